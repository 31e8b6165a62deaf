"""Parameter declarations, the source of validation, documentation and controls."""

from __future__ import annotations

import numbers
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeVar

from .errors import finite_number, one_of, whole_number

Kind = Literal["float", "int", "choice", "bool", "list"]

SMALL, LARGE = 1e-300, 1e300
"""Bounds of settings that have the units of X and y."""


@dataclass(frozen=True)
class ParamSpec:
    """Declaration of a parameter of a regularizer, a loss, a solver or a data set.

    Attributes
    ----------
    name : str
        The keyword.
    kind : {"float", "int", "choice", "bool", "list"}
        The type of its values. A list is a tuple of numbers and names, or of tuples of these; arrays and
        lists are converted.
    default : object
        The default value.
    low, high : float, optional
        Inclusive bounds of a number, or of all numbers of a list.
    choices : tuple of str
        The allowed values of a choice.
    log : bool
        Whether a slider should be logarithmic.
    symbol : str
        The LaTeX symbol of the parameter in formulas.
    help : str
        A sentence for users.
    """

    name: str
    kind: Kind
    default: Any
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    log: bool = False
    symbol: str = ""
    help: str = ""

    def check(self, value: Any) -> Any:
        """Return `value` in its canonical type, or raise ValueError with a sentence."""
        if self.kind == "choice":
            return one_of(self.name, value, self.choices)
        if self.kind == "bool":
            if value not in (True, False):
                raise ValueError(f"{self.name} = {value!r} is neither True nor False.")
            return bool(value)
        if self.kind == "int":
            return whole_number(self.name, value, self.low, self.high)
        if self.kind == "list":
            return self._items(value)
        return finite_number(self.name, value, self.low, self.high)

    def _items(self, value: Any, nested: bool = False) -> tuple[Any, ...]:
        items = getattr(value, "tolist", lambda: value)()
        if not isinstance(items, list | tuple):
            raise ValueError(
                f"{self.name} = {reprlib.repr(value)} is not a list of numbers or names, or of such lists."
            )
        return tuple(self._item(item, nested) for item in items)

    def _item(self, item: Any, nested: bool) -> Any:
        if isinstance(item, str):
            return str(item)
        if isinstance(item, numbers.Real) or nested:
            number = whole_number if isinstance(item, numbers.Integral) else finite_number
            return number(f"An item of {self.name}", item, self.low, self.high)
        return self._items(item, nested=True)


def check_params(owner: str, specs: Iterable[ParamSpec], given: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in defaults and validate.

    Parameters
    ----------
    owner : str
        The owner of the parameters, for the error message.
    specs : iterable of ParamSpec
        The declared parameters.
    given : mapping
        The passed values.

    Returns
    -------
    dict
        A validated value for every declared parameter.

    Raises
    ------
    ValueError
        If a name is undeclared or a value is invalid.
    """
    declared = {spec.name: spec for spec in specs}
    for name in given:
        if name not in declared:
            allowed = ", ".join(declared) if declared else "none at all"
            raise ValueError(f"{owner} has no parameter {name!r}; it takes {allowed}.")
    return {name: spec.check(given.get(name, spec.default)) for name, spec in declared.items()}


_SPEC = "spec"


def setting(
    default: Any,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    log: bool = False,
    symbol: str = "",
    help: str = "",
) -> Any:
    """Declare a field of a `Bound` class by its default and its `ParamSpec`.

    The kind is derived from the default: choice, bool, integer, float or list.
    """
    kinds: dict[type, Kind] = {str: "choice", bool: "bool", int: "int", float: "float", tuple: "list"}
    return declared(ParamSpec("", kinds[type(default)], default, low, high, choices, log, symbol, help))


def declared(spec: ParamSpec) -> Any:
    """Declare a field of a dataclass by its `ParamSpec`."""
    return field(default=spec.default, metadata={_SPEC: spec})


def specs_of_fields(cls: type) -> tuple[ParamSpec, ...]:
    """Return the declared fields of a class, with their names."""
    fields = vars(cls).get("__dataclass_fields__", vars(cls))
    return tuple(
        replace(value.metadata[_SPEC], name=name)
        for name, value in fields.items()
        if isinstance(value, Field) and _SPEC in value.metadata
    )


class Named:
    """Base class of registered components: losses, penalties, models, solvers.

    Attributes
    ----------
    noun : str
        The kind of component, for messages.
    name : str
        Its name in the registry.
    params : tuple of ParamSpec
        Its declared parameters.
    """

    noun: ClassVar[str]
    name: ClassVar[str]
    params: ClassVar[tuple[ParamSpec, ...]] = ()


@dataclass(frozen=True)
class Bound(Named):
    """Base class of components with parameters: losses, penalties, models.

    Subclasses are frozen dataclasses. Fields declared by `setting` are validated on construction; other
    fields are internal to the engine.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.params = (*cls.params, *specs_of_fields(cls))

    def __post_init__(self) -> None:
        for spec in self.params:
            object.__setattr__(self, spec.name, spec.check(getattr(self, spec.name)))

    @property
    def settings(self) -> dict[str, Any]:
        """The declared parameters and their values."""
        return {spec.name: getattr(self, spec.name) for spec in self.params}


Value = TypeVar("Value", bound=Named)


def registry(kind: type[Value], names: Mapping[str, Any]) -> dict[str, Value]:
    """Return a default instance of every subclass of `kind` in a namespace, by name."""
    classes = (cls for cls in names.values() if isinstance(cls, type) and issubclass(cls, kind))
    return {value.name: value for value in (cls() for cls in classes if cls is not kind)}


def bind(
    kind: type[Value],
    registry: Mapping[str, Value],
    given: str | Value,
    settings: Mapping[str, Any] | None = None,
) -> Value:
    """Return an instance unchanged, or create the registered one of this name with these parameters.

    Raises
    ------
    ValueError
        If the name is not registered, a class is passed, a parameter is undeclared or invalid, or parameters
        are passed in addition to an instance.
    """
    if isinstance(given, kind):
        if settings:
            raise ValueError(
                f"{given!r} already has parameters; omit {', '.join(settings)}, or pass the name "
                f"{given.name!r} instead."
            )
        return given
    if isinstance(given, type) and issubclass(given, kind):
        name = given.__name__
        raise ValueError(f"{kind.noun} = {name} is a class. Pass an instance: {name}(…).")
    chosen = registry[one_of(kind.noun, given, registry)]
    checked = check_params(f"{kind.noun.capitalize()} {given!r}", chosen.params, settings or {})
    return type(chosen)(**checked)
