"""Convert setting values to and from links, JSON, TOML and Python source."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pprint import pformat
from typing import Any

import numpy as np

from fmviz.engine.schedule import Change, changes_of

__all__ = [
    "TYPES",
    "ValueType",
    "changes_from_text",
    "changes_to_text",
    "plain",
    "to_python",
    "to_query",
    "to_toml",
]


def changes_to_text(changes: Iterable[Change]) -> str:
    """Return for instance ``"50:lambda_sparse:0.1,80:lambda_p:2.0"``; every value reads back exactly."""
    return ",".join(f"{epoch}:{name}:{value!r}" for epoch, name, value in changes)


def changes_from_text(text: str) -> tuple[Change, ...]:
    """Return the changes that a text of `changes_to_text` tells.

    Raises
    ------
    ValueError
        If it tells something else, with a sentence.
    """
    changes = []
    for item in _listed(text):
        try:
            epoch, name, value = item.split(":")
            changes.append((int(epoch), name.strip(), float(value)))
        except ValueError:
            raise ValueError(
                f"changes: {item!r} is no change of a strength; write the epoch after which it is made, the "
                "name and the new value, for instance 50:lambda_sparse:0.1."
            ) from None
    return changes_of(changes)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def _unless_wrong(read: Callable[[str], Any]) -> Callable[[str], Any]:
    def from_text(text: str) -> Any:
        try:
            return read(text)
        except ValueError:
            return text

    return from_text


@dataclass(frozen=True)
class ValueType:
    """How a link writes and reads the values of one type.

    Attributes
    ----------
    to_text : callable
        Returns the text of a value; it reads back exactly.
    from_text : callable
        Returns the value that a text tells. One that tells no such value may come back as it is: what is
        wrong with it says the setting that checks it.
    """

    to_text: Callable[[Any], str] = str
    from_text: Callable[[str], Any] = str


TYPES: dict[str, ValueType] = {
    "bool": ValueType(
        lambda value: "1" if value else "0",
        lambda text: {"1": True, "true": True, "0": False, "false": False}.get(text.lower(), text),
    ),
    "int": ValueType(str, _unless_wrong(int)),
    "float": ValueType(repr, _unless_wrong(float)),
    "choice": ValueType(),
    "text": ValueType(),
    # No choice at all is one, too; where nothing is named, the default is meant.
    "choices": ValueType(
        lambda value: ",".join(value) or "none",
        lambda text: () if text == "none" else tuple(part.strip() for part in text.split(",")),
    ),
    "names": ValueType(",".join, lambda text: text.split(",")),
    "numbers": ValueType(
        lambda value: ",".join(map(str, value)),
        _unless_wrong(lambda text: tuple(map(int, text.split(",")))),
    ),
    "changes": ValueType(changes_to_text, changes_from_text),
}
"""By the kind of a setting: those of `fmviz.engine.settings.ParamSpec`, and those that pages have besides."""

_KINDS = {bool: "bool", int: "int", float: "float"}


def to_query(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return settings that are words, numbers and truth values as the query parameters of a link."""
    return {name: TYPES[_KINDS.get(type(value), "text")].to_text(value) for name, value in settings.items()}


def plain(value: Any, *, finite: bool = True) -> Any:
    """Return a value, or what it holds, in the types of JSON.

    With `finite` NaN and infinities are None, since JSON has no word for them; without it they stay.
    """
    if isinstance(value, Mapping):
        return {str(name): plain(item, finite=finite) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, finite=finite) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        value = value.item()
    return None if finite and isinstance(value, float) and not math.isfinite(value) else value


def to_toml(value: Any) -> str:
    """Return words, numbers, truth values and lists of these as TOML, which writes them as JSON does."""
    # But for one character that only TOML escapes.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def to_python(value: Any) -> str:
    """Return a value as Python source; named tuples as plain ones."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, tuple):
        value = tuple(tuple(item) if isinstance(item, tuple) else item for item in value)
    return pformat(value, sort_dicts=False, width=96)
