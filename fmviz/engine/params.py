"""Declared parameters: one description that validates, documents and draws a control."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .errors import finite_number, one_of, whole_number

Kind = Literal["float", "int", "choice", "bool"]


@dataclass(frozen=True)
class ParamSpec:
    """One parameter of a regularizer, a loss, a solver or a data set.

    Attributes
    ----------
    name : str
        The keyword.
    kind : {"float", "int", "choice", "bool"}
        What values look like.
    default : object
        The value taken where none is given.
    low, high : float, optional
        Inclusive bounds of a number.
    choices : tuple of str
        The allowed values of a choice.
    log : bool
        Whether a slider should be logarithmic.
    symbol : str
        The LaTeX symbol under which the parameter enters the formula.
    help : str
        One sentence for a reader.
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
        return finite_number(self.name, value, self.low, self.high)


def check_params(owner: str, specs: Iterable[ParamSpec], given: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in defaults and validate.

    Parameters
    ----------
    owner : str
        Whose parameters these are, for the error message.
    specs : iterable of ParamSpec
        What is declared.
    given : mapping
        What the caller passed.

    Returns
    -------
    dict
        One validated value for every declared parameter.

    Raises
    ------
    ValueError
        If a name is not declared or a value is not allowed.
    """
    declared = {spec.name: spec for spec in specs}
    for name in given:
        if name not in declared:
            allowed = ", ".join(declared) if declared else "none at all"
            raise ValueError(f"{owner} has no parameter {name!r}; it takes {allowed}.")
    return {name: spec.check(given.get(name, spec.default)) for name, spec in declared.items()}
