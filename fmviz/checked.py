"""Validate external data against declared types: dataclasses whose fields have types and ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from annotated_types import Interval, Predicate

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")


def all_different(items: Sequence[Any]) -> bool:
    """Return whether all items are distinct."""
    return len(set(items)) == len(items)


Finite = Annotated[float, Interval(gt=-inf, lt=inf)]
Positive = Annotated[float, Interval(gt=0.0, lt=inf)]
NonNegative = Annotated[float, Interval(ge=0.0, lt=inf)]
Count = Annotated[int, Interval(ge=0, lt=2**53)]
Time = Annotated[float, Interval(ge=0.0, lt=9e9)]
"""Seconds since the epoch, up to the year 2255."""
Distinct = Annotated[tuple[str, ...], Predicate(all_different)]

_LONGEST = 60


def checked(form: Callable[..., T], data: Any) -> T:
    """Return data from JSON or TOML as an instance of a dataclass or another type.

    Parameters
    ----------
    form : type
        The declared type; dataclasses may be nested, and lists are converted to declared tuples.
    data : object
        The value, such as a dictionary of the fields.

    Raises
    ------
    ValueError
        If a field is missing, unknown, of the wrong type or out of range; the message names field and value.
    """
    from pydantic import ValidationError  # Slow to import.

    try:
        return _adapter(form).validate_python(data, extra="forbid")
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field = ".".join(map(str, first["loc"])) or form.__name__
        value = repr(first["input"])
        shown = value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…"
        message = first["msg"].removeprefix("Value error, ")
        raise ValueError(f"{field} = {shown}: {message[:1].lower()}{message[1:]}") from None


@cache
def _adapter(form: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(form)
