"""The settings of a training run: immutable, validated, hashable, convertible to and from JSON and URLs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from fmviz.engine.compatibility import why_not_together
from fmviz.engine.losses import LOSSES, Loss, get_loss, why_no_form
from fmviz.engine.models import MODELS, Model, get_model
from fmviz.engine.penalties import ALL_PENALTIES, Penalty, get_penalty
from fmviz.engine.problem import Formulation
from fmviz.engine.schedule import STRENGTHS, Change, Schedule, changes_of
from fmviz.engine.settings import ParamSpec, declared, setting, specs_of_fields
from fmviz.engine.solvers import SOLVERS, Solver, get_solver
from fmviz.engine.starts.informed import STARTS
from fmviz.lab.catalog import DataChoice, DatasetParam
from fmviz.lab.datasets import DATASETS
from fmviz.lab.values import TYPES, changes_from_text, changes_to_text, to_query
from fmviz.tables.target import Task


def _strength(default: float, symbol: str, of: str) -> Any:
    words = f"{of} Without a factor ½ in the objective."
    return setting(default, low=0, high=1e6, log=True, symbol=symbol, help=words)


OWNERS: dict[str, Callable[..., Any]] = {
    "dataset": DataChoice.of,
    "model": get_model,
    "regularizer": get_penalty,
    "loss": get_loss,
    "solver": lambda name, params=None: name if name == "auto" else get_solver(name, params),
}
"""Conversions of a setting with parameters from and to a name and a mapping of parameters.

In links and JSON a parameter has the name ``<setting>_<name>``.
"""


def name_of(value: Any) -> str:
    """Return the name of a value of a setting in `OWNERS`."""
    return value if isinstance(value, str) else value.name


def specs_of(value: Any) -> tuple[ParamSpec, ...]:
    """Return the parameters of a value of a setting in `OWNERS`."""
    return () if isinstance(value, str) else value.params


def changed_of(value: Any) -> dict[str, Any]:
    """Return the non-default parameters, sorted by name."""
    given = {spec.name: (value.settings[spec.name], spec.default) for spec in specs_of(value)}
    return {name: new for name, (new, default) in sorted(given.items()) if new != default}


def _check_writable(owner: str, value: Any) -> None:
    """Raise ValueError if the value of a setting in `OWNERS` is not determined by its name and parameters."""
    if not isinstance(value, str | DataChoice) and OWNERS[owner](value.name, changed_of(value)) != value:
        raise ValueError(
            f"{owner} = {value!r} cannot be stored: its name {value.name!r} and its parameters do not "
            "determine it. Register its class, and declare every field by `fmviz.engine.settings.setting`."
        )


# Omitted from JSON at their defaults: digests of stored runs are hashes of the JSON.
_OPTIONAL = ("start", "caps")


MOST_EPOCHS = 100_000


@dataclass(frozen=True)
class Experiment:
    """The settings of a training run.

    `SPECS` describes the fields. Data set, model, regularizer, loss and solver are given by name or as
    objects with parameters, and are stored as objects; the solver can be "auto".

    `changes` are changes of strengths during the run: (epoch, name, value), effective after that epoch;
    names are those of `fmviz.engine.schedule.STRENGTHS`. Changes without effect are dropped.

    Examples
    --------
    >>> import fmviz
    >>> experiment = fmviz.Experiment(dataset="monks1", loss="logistic", regularizer="cs", rank=5)
    >>> experiment.why_not() is None
    True
    >>> experiment.to_query()
    {'dataset': 'monks1', 'regularizer': 'cs', 'loss': 'logistic', 'rank': '5'}
    >>> fmviz.Experiment.from_json(experiment.to_json()) == experiment
    True
    """

    dataset: DataChoice = declared(
        DatasetParam("dataset", "choice", "planted_interactions", choices=tuple(DATASETS), help="Data set.")
    )
    seed: int = setting(
        0, low=0, high=2**31 - 1, help="Seed of the start and the split; the same seed repeats the run."
    )
    model: Model = setting("fm", choices=tuple(MODELS), help="Model to fit.")
    regularizer: Penalty = setting(
        "ti",
        choices=tuple(ALL_PENALTIES),
        help=r"Sparsity regularizer Ω in the term $\lambda\,\Omega(P)$.",
    )
    solver: Solver | str = setting(
        "auto", choices=("auto", *SOLVERS), help="Auto selects the default for the regularizer."
    )
    loss: Loss = setting(
        "squared",
        choices=tuple(LOSSES),
        help=r"Loss ℓ in $\frac1N\sum_n\ell(f(x_n),y_n)$.",
    )
    rank: int = setting(
        30, low=1, high=200, symbol="k", help=r"Columns of P: $w_{ij}=\sum_{s=1}^{k}p_{is}\,p_{js}$."
    )
    lambda_w: float = _strength(1e-4, r"\lambda_w", r"Strength in $\lambda_w\|w\|^2$.")
    lambda_p: float = _strength(1.0, r"\lambda_p", r"Strength in $\lambda_p\|P\|_F^2$.")
    lambda_sparse: float = _strength(1.0, r"\lambda", r"Strength in $\lambda\,\Omega(P)$.")
    fit_linear: bool = setting(True, help=r"Whether f has a linear term $\langle w,x\rangle=\sum_j w_jx_j$.")
    fit_intercept: bool = setting(True, help=r"Whether f has an unpenalised constant $b$.")
    init_scale: float = setting(
        0.01,
        low=0,
        high=100,
        log=True,
        symbol=r"\sigma",
        help=r"Initial entries of P are drawn from $\mathcal N(0,\sigma^2)$.",
    )
    max_epochs: int = setting(300, low=1, high=MOST_EPOCHS, help="Maximum number of epochs.")
    tol: float = setting(
        1e-4,
        low=0,
        high=1,
        log=True,
        help="Convergence: no parameter changes by more than this fraction of the largest one: "
        r"$\max|\Delta|\leq\mathrm{tol}\cdot\max|\theta|$.",
    )
    validation: float = setting(0.0, low=0, high=0.9, help="Share of rows held out for validation.")
    changes: tuple[Change, ...] = ()
    start: str = setting(
        "random",
        choices=(*STARTS, "warm"),
        help="Informed: escapes P = 0 if it is a saddle point; regularizers for which it never is (ℓ₁) start "
        "from a fit with ℓ₂². Random: as published; a small start may collapse to P = 0 and stay there. "
        "Warm: preceded by informed fits along a fixed grid of weaker λ, twelve per decade.",
    )
    caps: str = setting(
        "given",
        choices=("given", "auto"),
        help="Caps of a capped loss. Auto: ε₁ and ε₂ are estimated from the noise, and ε₃ and λ_Z of the "
        "robust machine from the eigenvalues of pure noise; explicit values are ignored.",
    )

    def __post_init__(self) -> None:
        for spec in SPECS:
            value = getattr(self, spec.name)
            if spec.name in OWNERS:
                value = OWNERS[spec.name](spec.check(value)) if isinstance(value, str) else value
                _check_writable(spec.name, value)
            else:
                value = spec.check(value)
            object.__setattr__(self, spec.name, value)
        present = {name: getattr(self, name) for name in STRENGTHS}
        kept = []
        for change in changes_of(self.changes):
            value = _BY_NAME[change.name].check(change.value)
            if present[change.name] != value:
                present[change.name] = value
                kept.append(Change(change.epoch, change.name, value))
        object.__setattr__(self, "changes", tuple(kept))

    @cached_property
    def formulation(self) -> Formulation:
        """The combination of model, regularizer and loss; raises ValueError if they are incompatible."""
        return Formulation.build(self.model, self.regularizer, self.loss, self.rank)

    @property
    def finds_caps(self) -> bool:
        """Whether caps are estimated from the data: `caps` is "auto", and the loss has a cap."""
        return self.caps == "auto" and self.loss.cap is not None

    def strengths(self, epoch: int) -> dict[str, float]:
        """Return the strengths of the epoch after `epoch`."""
        return {name: getattr(self, name) for name in STRENGTHS} | Schedule(self.changes).after(epoch)

    def under(self, strengths: Mapping[str, float]) -> Experiment:
        """Return the experiment with these strengths from the start on."""
        return replace(self, changes=(), **dict[str, Any](strengths))

    def changed(self, epoch: int, **strengths: float) -> Experiment:
        """Return the experiment with other strengths after an epoch.

        Raises
        ------
        ValueError
            If a value is out of range, or invalid for the model.
        """
        new = [Change(epoch, name, value) for name, value in strengths.items()]
        experiment = replace(self, changes=(*self.changes, *new))
        if (reason := experiment._why_not_strengths()) is not None:
            raise ValueError(reason)
        return experiment

    def applicable(self) -> Experiment:
        """Return the experiment with incompatible regularizer, loss, strengths or solver replaced."""
        experiment = self
        if experiment._why_no_form() is not None:
            experiment = replace(experiment, loss=LOSSES["logistic"])
        if experiment._why_not_penalty() is not None:
            first = experiment.model.suited.get("regularizer", experiment.regularizer.name)
            others = (
                replace(experiment, regularizer=ALL_PENALTIES[name]) for name in (first, *ALL_PENALTIES)
            )
            experiment = next((other for other in others if other._why_not_penalty() is None), experiment)
        for lambda_p, lambda_sparse in ((0.0, self.lambda_sparse), (self.lambda_p, 0.0)):
            if experiment._why_not_strengths() is not None:
                experiment = replace(experiment, lambda_p=lambda_p, lambda_sparse=lambda_sparse, changes=())
        if experiment.why_not() is not None:
            experiment = replace(experiment, solver="auto")
        return experiment

    def why_not(self) -> str | None:
        """Return the reason why the run is impossible, or None."""
        return self._reason

    @cached_property
    def _reason(self) -> str | None:
        data = self.dataset.spec
        unsuitable = self.loss.why_not_task(data.task != "regression", f"the target of {data.title}")
        if unsuitable is not None:
            return unsuitable
        if self.finds_caps and data.task not in ("regression", "binary"):
            return (
                f"Caps are estimated only for a single output, and {data.title} has several. Set the caps "
                "explicitly."
            )
        return self._why_no_form() or self._why_not_penalty(self.solver) or self._why_not_strengths()

    def _why_no_form(self) -> str | None:
        """Return the reason why the loss has no joint form for several outputs, or None."""
        task = self.dataset.spec.task
        if not self.model.multi_output or task == "regression" or task == "binary":
            return None
        return why_no_form(self.loss, task)

    def _why_not_penalty(self, solver: Solver | str = "auto") -> str | None:
        """Return the reason why model, regularizer, loss and solver are incompatible, or None."""
        return why_not_together(self.model, self.regularizer, self.loss, solver)

    def _why_not_strengths(self) -> str | None:
        try:
            for epoch in (-1, *(change.epoch for change in self.changes)):
                strengths = self.strengths(epoch)
                self.model.check_strengths(strengths["lambda_p"], strengths["lambda_sparse"])
        except ValueError as error:
            return str(error)
        return None

    def to_dict(self, defaults: bool = True) -> dict[str, Any]:
        """Return the settings as a dictionary, by default including default values.

        Parameters of choices have names ``<setting>_<name>``; changes are a text.
        """
        settings = {name: getattr(self, name) for name in _BY_NAME}
        for owner in OWNERS:
            own = {f"{owner}_{name}": value for name, value in changed_of(settings[owner]).items()}
            settings |= {owner: name_of(settings[owner]), **own}
        if self.changes:
            settings["changes"] = changes_to_text(self.changes)
        return {
            k: v for k, v in settings.items() if defaults or k not in _BY_NAME or v != _BY_NAME[k].default
        }

    def to_json(self) -> str:
        """Return the settings as JSON with sorted keys."""
        each = self.to_dict().items()
        settings = {k: v for k, v in each if k not in _OPTIONAL or v != _BY_NAME[k].default}
        return json.dumps(settings, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Experiment:
        """Parse the JSON of `to_json`; raises ValueError on anything else."""
        given = json.loads(text)
        if not isinstance(given, dict):
            raise ValueError("An experiment is a JSON object of settings.")
        return cls.from_dict(given)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Experiment:
        """Return the experiment of a complete or partial dictionary by `to_dict`."""
        others = dict(given)
        changes = others.pop("changes", ())
        known = {name: others.pop(name) for name in given if name in _BY_NAME}
        for owner, bound in OWNERS.items():
            names = [name for name in others if name.startswith(f"{owner}_")]
            own = {name.removeprefix(f"{owner}_"): others.pop(name) for name in names}
            value = known.get(owner, _BY_NAME[owner].default)
            if own or isinstance(value, str):
                known[owner] = bound(_BY_NAME[owner].check(name_of(value)), own)
        if others:
            raise ValueError(f"Unknown setting {min(others)!r}; available: {', '.join(_BY_NAME)}.")
        return cls(**known, changes=changes_from_text(changes) if isinstance(changes, str) else changes)

    def to_query(self) -> dict[str, str]:
        """Return the settings that differ from their defaults as URL parameters."""
        return to_query(self.to_dict(defaults=False))

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> Experiment:
        """Parse URL parameters, such as those of `to_query`; others are ignored."""
        specs = dict(_BY_NAME)
        for owner, bound in OWNERS.items():
            chosen = bound(query.get(owner, _BY_NAME[owner].default))
            specs |= {f"{owner}_{spec.name}": spec for spec in specs_of(chosen)}
        given = {name: spec for name, spec in specs.items() if name in query}
        settings = {name: TYPES[spec.kind].from_text(query[name]) for name, spec in given.items()}
        return cls.from_dict(settings | {"changes": query.get("changes", "")})

    @property
    def digest(self) -> str:
        """A short hash of the settings, the same in every process."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:12]


SPECS: tuple[ParamSpec, ...] = specs_of_fields(Experiment)
"""All settings of a run, for pages, URLs and JSON."""
_BY_NAME = {spec.name: spec for spec in SPECS}


def suggested(dataset: str | DataChoice, model: str | Model | None = None) -> Experiment:
    """Return the suggested experiment of a data set.

    Strengths are the same for every model: quadratic regression scales the penalty of W like that of PPᵀ in a
    factorization machine (see `models.quadratic`). An inapplicable regularizer is replaced.

    Parameters
    ----------
    dataset : str or DataChoice
        A key of `DATASETS`.
    model : str or Model, optional
        The model; by default that of the registry entry, or a factorization machine. A model given by name
        gets parameters appropriate for the data.
    """
    source = DataChoice.of(dataset)
    spec = source.spec
    known = {k: v for k, v in spec.suggested.items() if k in _BY_NAME}
    made_for = known.pop("model", "fm")
    chosen = get_model(made_for if model is None else model)
    settings = {**known, **suited_settings(chosen, spec.task), **spec.suited.get(chosen.name, {})}
    if changed_of(chosen):
        settings = {name: value for name, value in settings.items() if not name.startswith("model_")}
    if chosen.columnar:
        given = settings.get("regularizer", "ti")
        settings["regularizer"] = ALL_PENALTIES[given].beyond_pairs or given
    return Experiment.from_dict({**settings, "dataset": source, "model": chosen}).applicable()


def suited_settings(model: Model, task: Task) -> dict[str, Any]:
    """Return the settings for a model and a task, independent of the data."""
    settings = dict(model.suited)
    if model.suited_loss:
        settings["loss"] = model.suited_loss.get(task, model.suited_loss["binary"])
        settings["caps"] = "auto" if task in model.suited_loss else "given"
    return settings
