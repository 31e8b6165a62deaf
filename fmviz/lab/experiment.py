"""One training run, described completely: frozen, validated, hashable, to and from JSON and URLs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from fmviz.engine.compatibility import why_not
from fmviz.engine.losses import LOSSES
from fmviz.engine.models import MODELS
from fmviz.engine.params import ParamSpec, check_params
from fmviz.engine.regularizers import REGULARIZERS
from fmviz.engine.solvers import SOLVERS
from fmviz.lab.datasets import DATASETS

_STRENGTH_HELP = "The objective holds it without a ½ in front."

SPECS: tuple[ParamSpec, ...] = (
    ParamSpec("dataset", "choice", "planted_interactions", choices=tuple(DATASETS), help="The data."),
    ParamSpec(
        "seed",
        "int",
        0,
        0,
        2**31 - 1,
        help="Draws the start and the split; the same seed repeats the run exactly.",
    ),
    ParamSpec("model", "choice", "fm", choices=tuple(MODELS), help="What is fitted."),
    ParamSpec("regularizer", "choice", "ti", choices=tuple(REGULARIZERS), help="The sparsity penalty Ω."),
    ParamSpec(
        "axis",
        "choice",
        "columns",
        choices=("columns", "rows"),
        help="TI only: square the norms of the columns (the definition) or of the rows.",
    ),
    ParamSpec(
        "solver",
        "choice",
        "auto",
        choices=("auto", *SOLVERS),
        help="Auto takes the one made for the penalty.",
    ),
    ParamSpec("loss", "choice", "squared", choices=tuple(LOSSES), help="What a wrong prediction costs."),
    ParamSpec(
        "huber_delta",
        "float",
        1.0,
        1e-6,
        1e6,
        log=True,
        symbol=r"\delta",
        help="Huber only: residuals beyond δ count linearly.",
    ),
    ParamSpec("rank", "int", 30, 1, 200, symbol="k", help="Columns of P."),
    ParamSpec(
        "lambda_w", "float", 1e-4, 0, 1e6, log=True, symbol=r"\lambda_w", help=f"Of ‖w‖². {_STRENGTH_HELP}"
    ),
    ParamSpec(
        "lambda_p", "float", 1.0, 0, 1e6, log=True, symbol=r"\lambda_p", help=f"Of ‖P‖²_F. {_STRENGTH_HELP}"
    ),
    ParamSpec(
        "lambda_sparse",
        "float",
        1.0,
        0,
        1e6,
        log=True,
        symbol=r"\tilde\lambda_p",
        help=f"Of the sparsity penalty Ω(P). {_STRENGTH_HELP}",
    ),
    ParamSpec("fit_linear", "bool", True, help="Whether there is a linear term ⟨w, x⟩."),
    ParamSpec("fit_intercept", "bool", True, help="Whether there is an unpenalised bias."),
    ParamSpec("init_scale", "float", 0.01, 0, 100, log=True, symbol=r"\sigma", help="P starts as N(0, σ²)."),
    ParamSpec("max_epochs", "int", 300, 1, 100_000, help="The run ends here at the latest."),
    ParamSpec(
        "tol",
        "float",
        1e-4,
        0,
        1,
        log=True,
        help="Converged when no parameter changes by more than this share of the largest one.",
    ),
    ParamSpec(
        "validation",
        "float",
        0.0,
        0,
        0.9,
        help="The share of rows kept out of training and used to validate.",
    ),
)
"""Every setting of a run: what a page draws, a URL holds and JSON stores."""

# Before the name of a parameter of the data set, in JSON and in URLs.
_DATA = "data_"
_BY_NAME = {spec.name: spec for spec in SPECS}


@dataclass(frozen=True)
class Experiment:
    """A training run.

    The fields are those of `SPECS`, in which each is described, and `dataset_params`: the data set's own
    parameters as (name, value) pairs, of which only those that differ from their defaults are kept.
    """

    dataset: str = "planted_interactions"
    seed: int = 0
    model: str = "fm"
    regularizer: str = "ti"
    axis: str = "columns"
    solver: str = "auto"
    loss: str = "squared"
    huber_delta: float = 1.0
    rank: int = 30
    lambda_w: float = 1e-4
    lambda_p: float = 1.0
    lambda_sparse: float = 1.0
    fit_linear: bool = True
    fit_intercept: bool = True
    init_scale: float = 0.01
    max_epochs: int = 300
    tol: float = 1e-4
    validation: float = 0.0
    dataset_params: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        for item in fields(self):
            if item.name in _BY_NAME:
                object.__setattr__(self, item.name, _BY_NAME[item.name].check(getattr(self, item.name)))
        spec = DATASETS[self.dataset]
        given = check_params(f"Data set {self.dataset!r}", spec.params, dict(self.dataset_params))
        default = {p.name: p.default for p in spec.params}
        changed = {k: v for k, v in given.items() if v != default[k]}
        object.__setattr__(self, "dataset_params", tuple(sorted(changed.items())))

    @property
    def regularizer_params(self) -> dict[str, Any]:
        """The regularizer's own parameters among the settings."""
        names = {spec.name for spec in REGULARIZERS[self.regularizer].params}
        return {name: value for name, value in asdict(self).items() if name in names}

    @property
    def loss_param(self) -> float | None:
        """The loss's own parameter, or None where it has none."""
        return self.huber_delta if LOSSES[self.loss].param is not None else None

    def why_not(self) -> str | None:
        """Return None, or the sentence that says why this run cannot be done."""
        task = DATASETS[self.dataset].task
        if LOSSES[self.loss].task == "binary" and task != "binary":
            return (
                f"The {LOSSES[self.loss].label.lower()} loss wants two classes, but the target of "
                f"{DATASETS[self.dataset].title} is a number. Choose the squared or the Huber loss."
            )
        return why_not(
            self.regularizer,
            self.solver,
            loss=self.loss,
            model=self.model,
            regularizer_params=self.regularizer_params,
        )

    def to_dict(self, defaults: bool = True) -> dict[str, Any]:
        """Return the settings, those of the data set as ``data_<name>``; unchanged ones with `defaults`."""
        settings = {k: v for k, v in asdict(self).items() if k in _BY_NAME}
        chosen = {k: v for k, v in settings.items() if defaults or v != _BY_NAME[k].default}
        return chosen | {_DATA + name: value for name, value in self.dataset_params}

    def to_json(self) -> str:
        """Return the settings as JSON, keys sorted."""
        return json.dumps(self.to_dict(), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Experiment:
        """Read what `to_json` wrote; raises ValueError with a sentence on anything else."""
        try:
            given = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"This is not JSON: {error}.") from None
        if not isinstance(given, dict):
            raise ValueError("An experiment is a JSON object of settings.")
        unknown = sorted(k for k in given if k not in _BY_NAME and not k.startswith(_DATA))
        if unknown:
            raise ValueError(f"Unknown setting {unknown[0]!r}; known are {', '.join(_BY_NAME)}.")
        data = tuple((k.removeprefix(_DATA), v) for k, v in given.items() if k.startswith(_DATA))
        return cls(**{k: v for k, v in given.items() if k in _BY_NAME}, dataset_params=data)

    def to_query(self) -> dict[str, str]:
        """Return the settings that differ from the defaults as URL parameters."""
        return {k: _to_text(v) for k, v in self.to_dict(defaults=False).items()}

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> tuple[Experiment, list[str]]:
        """Read URL parameters; return the experiment and a sentence for every value replaced."""
        notices: list[str] = []
        settings = _read(_BY_NAME.values(), "", query, notices)
        dataset = settings.get("dataset", _BY_NAME["dataset"].default)
        data = _read(DATASETS[dataset].params, _DATA, query, notices)
        return cls(**settings, dataset_params=tuple(data.items())), notices

    @property
    def digest(self) -> str:
        """A short name of these settings, the same in every process."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:12]


def _read(
    specs: Iterable[ParamSpec], prefix: str, query: Mapping[str, str], notices: list[str]
) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for spec in specs:
        if prefix + spec.name in query:
            try:
                settings[spec.name] = spec.check(_from_text(spec, query[prefix + spec.name]))
            except ValueError as error:
                notices.append(f"{error} The link's value was replaced by {_to_text(spec.default)}.")
    return settings


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    return repr(value) if isinstance(value, float) else str(value)


def _from_text(spec: ParamSpec, text: str) -> Any:
    if spec.kind == "bool":
        return {"1": True, "true": True, "0": False, "false": False}.get(text.lower(), text)
    if spec.kind in ("int", "float"):
        try:
            return int(text) if spec.kind == "int" else float(text)
        except ValueError:
            return text
    return text


def suggested(dataset: str) -> Experiment:
    """Return the experiment that says something on this data set, as its registry entry suggests."""
    known = {k: v for k, v in DATASETS[dataset].suggested.items() if k in _BY_NAME}
    return Experiment(dataset=dataset, **known)
