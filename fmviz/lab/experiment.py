"""The settings of a training run: immutable, validated, hashable, convertible to and from JSON and URLs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from fmviz.engine.compatibility import why_not
from fmviz.engine.losses import LOSSES, Loss, get_loss, why_no_form
from fmviz.engine.models import MODELS, Model, get_model
from fmviz.engine.penalties import ALL_PENALTIES, Penalty, get_penalty
from fmviz.engine.problem import Formulation
from fmviz.engine.schedule import STRENGTHS, Change, Schedule, changes_of
from fmviz.engine.settings import Bound, ParamSpec, check_params, declared, setting, specs_of_fields
from fmviz.engine.solvers import SOLVERS
from fmviz.engine.starts.informed import STARTS
from fmviz.lab.catalog import DatasetParam, dataset_spec
from fmviz.lab.datasets import DATASETS
from fmviz.lab.values import TYPES, changes_from_text, changes_to_text, to_query
from fmviz.tables.target import Task


def _strength(default: float, symbol: str, of: str) -> Any:
    words = f"{of} The objective holds it without a ½ in front."
    return setting(default, low=0, high=1e6, log=True, symbol=symbol, help=words)


OWNERS: dict[str, Callable[[str], tuple[ParamSpec, ...]]] = {
    "dataset": lambda name: dataset_spec(name).params,
    "model": lambda name: MODELS[name].params,
    "regularizer": lambda name: ALL_PENALTIES[name].params,
    "loss": lambda name: LOSSES[name].params,
    "solver": lambda name: SOLVERS[name].params if name in SOLVERS else (),
}
"""The settings whose values have parameters of their own, which links and JSON call ``<setting>_<name>``."""

# Omitted from JSON where they have their default: digests of stored runs are hashes of it.
_OPTIONAL = ("start", "caps")


@dataclass(frozen=True)
class Experiment:
    """The settings of a training run.

    The fields are those of `SPECS`, where they are described, and the parameters of the chosen data set,
    model, regularizer, loss and solver: (name, value) pairs that differ from their defaults.

    `changes` are changes of strengths during the run: (epoch, name, value), effective after so many epochs,
    with the names `fmviz.engine.schedule.STRENGTHS`. Changes without effect are dropped.

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

    dataset: str = declared(
        DatasetParam("dataset", "choice", "planted_interactions", choices=tuple(DATASETS), help="The data.")
    )
    seed: int = setting(
        0, low=0, high=2**31 - 1, help="Draws the start and the split; the same seed repeats the run exactly."
    )
    model: str = setting("fm", choices=tuple(MODELS), help="What is fitted.")
    regularizer: str = setting(
        "ti",
        choices=tuple(ALL_PENALTIES),
        help=r"The sparsity regularizer Ω: the objective holds $\lambda\,\Omega(P)$.",
    )
    solver: str = setting(
        "auto", choices=("auto", *SOLVERS), help="Auto takes the one made for the regularizer."
    )
    loss: str = setting(
        "squared",
        choices=tuple(LOSSES),
        help=r"What a wrong prediction costs: ℓ in $\frac1N\sum_n\ell(f(x_n),y_n)$.",
    )
    rank: int = setting(
        30, low=1, high=200, symbol="k", help=r"Columns of P: $w_{ij}=\sum_{s=1}^{k}p_{is}\,p_{js}$."
    )
    lambda_w: float = _strength(1e-4, r"\lambda_w", r"Of $\lambda_w\|w\|^2$.")
    lambda_p: float = _strength(1.0, r"\lambda_p", r"Of $\lambda_p\|P\|_F^2$.")
    lambda_sparse: float = _strength(1.0, r"\lambda", r"Of the sparsity regularizer, $\lambda\,\Omega(P)$.")
    fit_linear: bool = setting(True, help=r"Whether f holds $\langle w,x\rangle=\sum_j w_jx_j$.")
    fit_intercept: bool = setting(True, help=r"Whether f holds a constant $b$, which is not penalised.")
    init_scale: float = setting(
        0.01,
        low=0,
        high=100,
        log=True,
        symbol=r"\sigma",
        help=r"The entries of P start as draws from $\mathcal N(0,\sigma^2)$.",
    )
    max_epochs: int = setting(300, low=1, high=100_000, help="The run ends here at the latest.")
    tol: float = setting(
        1e-4,
        low=0,
        high=1,
        log=True,
        help="Converged when no parameter changes by more than this share of the largest one: "
        r"$\max|\Delta|\leq\mathrm{tol}\cdot\max|\theta|$.",
    )
    validation: float = setting(
        0.0, low=0, high=0.9, help="The share of rows kept out of training and used to validate."
    )
    dataset_params: tuple[tuple[str, Any], ...] = ()
    model_params: tuple[tuple[str, Any], ...] = ()
    regularizer_params: tuple[tuple[str, Any], ...] = ()
    loss_params: tuple[tuple[str, Any], ...] = ()
    solver_params: tuple[tuple[str, Any], ...] = ()
    changes: tuple[Change, ...] = ()
    start: str = setting(
        "random",
        choices=STARTS,
        help="Informed: P = 0 is left where it is a saddle point, and a regularizer under which it never is, "
        "as ℓ₁, starts from a fit with ℓ₂² in its place. Random: as published; a small start may collapse "
        "to P = 0, and stays there.",
    )
    caps: str = setting(
        "given",
        choices=("given", "auto"),
        help="Of a loss with a cap. Auto: ε₁ and ε₂ follow from the scale of the noise, and of the robust "
        "machine ε₃ and λ_Z from eigenvalues that noise alone would have; the numbers that are set have no "
        "say.",
    )

    def __post_init__(self) -> None:
        for owner in OWNERS:
            value = getattr(self, owner)
            if isinstance(value, Bound):
                object.__setattr__(self, owner, value.name)
                object.__setattr__(self, f"{owner}_params", tuple(value.settings.items()))
        for item in fields(self):
            if item.name in _BY_NAME:
                object.__setattr__(self, item.name, _BY_NAME[item.name].check(getattr(self, item.name)))
        for owner, specs_of in OWNERS.items():
            choice, field = getattr(self, owner), f"{owner}_params"
            specs = specs_of(choice)
            given = check_params(f"{owner.capitalize()} {choice!r}", specs, dict(getattr(self, field)))
            default = {spec.name: spec.default for spec in specs}
            changed = {name: value for name, value in given.items() if value != default[name]}
            object.__setattr__(self, field, tuple(sorted(changed.items())))
        present = {name: getattr(self, name) for name in STRENGTHS}
        kept = []
        for change in changes_of(self.changes):
            value = _BY_NAME[change.name].check(change.value)
            if present[change.name] != value:
                present[change.name] = value
                kept.append(Change(change.epoch, change.name, value))
        object.__setattr__(self, "changes", tuple(kept))

    @property
    def machine(self) -> Model:
        """The model with its parameters."""
        return get_model(self.model, dict(self.model_params))

    @property
    def penalty(self) -> Penalty:
        """The regularizer with its parameters."""
        return get_penalty(self.regularizer, dict(self.regularizer_params))

    @property
    def criterion(self) -> Loss:
        """The loss with its parameters."""
        return get_loss(self.loss, dict(self.loss_params))

    @property
    def formulation(self) -> Formulation:
        """The combination of model, regularizer and loss; raises ValueError if they are incompatible."""
        return Formulation.build(self.machine, self.penalty, self.criterion, self.rank)

    @property
    def finds_caps(self) -> bool:
        """Whether caps are estimated from the data: `caps` is "auto", and the loss has one."""
        return self.caps == "auto" and any(spec.name == "cap" for spec in LOSSES[self.loss].params)

    def strengths(self, epoch: int) -> dict[str, float]:
        """Return the strengths after so many epochs, which are those of the next epoch."""
        return {name: getattr(self, name) for name in STRENGTHS} | Schedule(self.changes).after(epoch)

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
            experiment = replace(experiment, loss="logistic", loss_params=())
        if experiment._why_not_penalty() is not None:
            names = (experiment.machine.suited.get("regularizer", experiment.regularizer), *ALL_PENALTIES)
            others = (replace(experiment, regularizer=name, regularizer_params=()) for name in names)
            experiment = next((other for other in others if other._why_not_penalty() is None), experiment)
        for lambda_p, lambda_sparse in ((0.0, self.lambda_sparse), (self.lambda_p, 0.0)):
            if experiment._why_not_strengths() is not None:
                experiment = replace(experiment, lambda_p=lambda_p, lambda_sparse=lambda_sparse, changes=())
        if experiment.why_not() is not None:
            experiment = replace(experiment, solver="auto", solver_params=())
        return experiment

    def why_not(self) -> str | None:
        """Return the reason why the run is impossible, or None."""
        task = dataset_spec(self.dataset).task
        if LOSSES[self.loss].task == "binary" and task == "regression":
            return (
                f"The {LOSSES[self.loss].label.lower()} loss needs classes, but the target of "
                f"{dataset_spec(self.dataset).title} is a number. Choose the squared or the Huber loss."
            )
        if self.finds_caps and task not in ("regression", "binary"):
            return (
                f"Caps are found for one output, and {dataset_spec(self.dataset).title} has a machine for "
                "each of several. Set the caps yourself."
            )
        return self._why_no_form() or self._why_not_penalty(self.solver) or self._why_not_strengths()

    def _why_no_form(self) -> str | None:
        """Return the reason why the loss has no joint form for several outputs, if the model needs one."""
        task = dataset_spec(self.dataset).task
        if not self.machine.multi_output or task == "regression" or task == "binary":
            return None
        return why_no_form(self.criterion, task)

    def _why_not_penalty(self, solver: str = "auto") -> str | None:
        """Return the reason why model, regularizer, loss and solver are incompatible, or None."""
        if (reason := self.machine.why_not(self.penalty)) is not None:
            return reason
        return why_not(self.formulation, solver)

    def _why_not_strengths(self) -> str | None:
        try:
            for epoch in (-1, *(change.epoch for change in self.changes)):
                strengths = self.strengths(epoch)
                self.machine.check_strengths(strengths["lambda_p"], strengths["lambda_sparse"])
        except ValueError as error:
            return str(error)
        return None

    def to_dict(self, defaults: bool = True) -> dict[str, Any]:
        """Return the settings as a dictionary, by default with those that have their default value.

        Parameters of choices are called ``<setting>_<name>``; changes are a text.
        """
        settings = {k: v for k, v in asdict(self).items() if k in _BY_NAME}
        chosen = {k: v for k, v in settings.items() if defaults or v != _BY_NAME[k].default}
        for owner in OWNERS:
            chosen |= {f"{owner}_{name}": value for name, value in getattr(self, f"{owner}_params")}
        return chosen | ({"changes": changes_to_text(self.changes)} if self.changes else {})

    def to_json(self) -> str:
        """Return the settings as JSON with sorted keys."""
        settings = self.to_dict()
        settings = {k: v for k, v in settings.items() if k not in _OPTIONAL or v != _BY_NAME[k].default}
        return json.dumps(settings, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Experiment:
        """Parse the JSON of `to_json`; raises ValueError on anything else."""
        try:
            given = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"This is not JSON: {error}.") from None
        if not isinstance(given, dict):
            raise ValueError("An experiment is a JSON object of settings.")
        return cls.from_dict(given)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Experiment:
        """Return the experiment of a dictionary by `to_dict`, or of a part of one."""
        known = {name: value for name, value in given.items() if name in _BY_NAME}
        own: dict[str, Any] = {
            f"{owner}_params": tuple(
                (name.removeprefix(f"{owner}_"), value)
                for name, value in given.items()
                if name.startswith(f"{owner}_")
            )
            for owner in OWNERS
        }
        parameters = {f"{owner}_{name}" for owner in OWNERS for name, _ in own[f"{owner}_params"]}
        if unknown := set(given) - {*known, *parameters, "changes"}:
            raise ValueError(f"Unknown setting {min(unknown)!r}; known are {', '.join(_BY_NAME)}.")
        return cls(**known, **own, changes=changes_from_text(str(given.get("changes", ""))))

    def to_query(self) -> dict[str, str]:
        """Return the settings that differ from their defaults as URL parameters."""
        return to_query(self.to_dict(defaults=False))

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> tuple[Experiment, list[str]]:
        """Parse URL parameters; return the experiment and a sentence for every value replaced."""
        notices: list[str] = []
        settings = _read(_BY_NAME.values(), "", query, notices)
        for owner, specs_of in OWNERS.items():
            own = _read(specs_of(settings.get(owner, _BY_NAME[owner].default)), f"{owner}_", query, notices)
            settings[f"{owner}_params"] = tuple(own.items())
        try:
            settings["changes"] = changes_from_text(query.get("changes", ""))
        except ValueError as error:
            notices.append(f"{error} The link's changes were left out.")
        return cls(**settings), notices

    @property
    def digest(self) -> str:
        """A short hash of the settings, the same in every process."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:12]


SPECS: tuple[ParamSpec, ...] = specs_of_fields(Experiment)
"""Every setting of a run, in pages, URLs and JSON."""
_BY_NAME = {spec.name: spec for spec in SPECS}


def _read(
    specs: Iterable[ParamSpec], prefix: str, query: Mapping[str, str], notices: list[str]
) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for spec in specs:
        if prefix + spec.name in query:
            written = TYPES[spec.kind]
            try:
                settings[spec.name] = spec.check(written.from_text(query[prefix + spec.name]))
            except ValueError as error:
                notices.append(f"{error} The link's value was replaced by {written.to_text(spec.default)}.")
    return settings


def suggested(
    dataset: str, model: str | None = None, model_params: tuple[tuple[str, Any], ...] = ()
) -> Experiment:
    """Return the experiment that the registry entry of a data set suggests.

    The strengths are the same for every model: those of quadratic regression weigh W as those of a
    factorization machine weigh PPᵀ (see `models.quadratic`). An inapplicable regularizer is replaced.

    Parameters
    ----------
    dataset : str
        A key of `DATASETS`.
    model : str, optional
        The model; by default that of the registry entry, or a factorization machine.
    model_params : tuple of (str, value)
        The parameters of the model; by default those that suit the data.
    """
    spec = dataset_spec(dataset)
    known = {k: v for k, v in spec.suggested.items() if k in _BY_NAME}
    made_for = known.pop("model", "fm")
    chosen = get_model(made_for if model is None else model, dict(model_params))
    suited = {**suited_settings(chosen, spec.task), **spec.suited.get(chosen.name, {})}
    settings = {**known, **suited, "model": chosen.name}
    if model_params or "model_params" not in settings:
        settings["model_params"] = model_params
    if chosen.columnar:
        given = settings.get("regularizer", "ti")
        settings["regularizer"] = ALL_PENALTIES[given].beyond_pairs or given
    return Experiment(dataset=dataset, **settings).applicable()


def suited_settings(model: Model, task: Task) -> dict[str, Any]:
    """Return the settings that suit a model and a task, independently of the data."""
    settings = dict(model.suited)
    if model.suited_loss:
        settings["loss"] = model.suited_loss.get(task, model.suited_loss["binary"])
        settings["caps"] = "auto" if task in model.suited_loss else "given"
    return settings
