"""Conversion of setting values to and from links, JSON, TOML and Python source."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pprint import pformat
from typing import Any

import numpy as np

from fmviz.engine.schedule import Change, changes_of


def changes_to_text(changes: Iterable[Change]) -> str:
    """Return changes as text without loss, for instance ``"50:lambda_sparse:0.1,80:lambda_p:2.0"``."""
    return ",".join(f"{epoch}:{name}:{value!r}" for epoch, name, value in changes)


def changes_from_text(text: str) -> tuple[Change, ...]:
    """Parse the text of `changes_to_text`; raises ValueError on anything else."""
    changes = []
    for item in filter(None, map(str.strip, text.split(","))):
        try:
            epoch, name, value = item.split(":")
            changes.append((int(epoch), name.strip(), float(value)))
        except ValueError:
            raise ValueError(
                f"changes: {item!r} is not a change of a strength; give epoch, name and new value, for "
                "instance 50:lambda_sparse:0.1."
            ) from None
    return changes_of(changes)


def _unless_wrong(read: Callable[[str], Any]) -> Callable[[str], Any]:
    def from_text(text: str) -> Any:
        try:
            return read(text)
        except (ValueError, RecursionError):
            return text

    return from_text


_LONGEST = 1_500


def _list_to_text(value: tuple[Any, ...]) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if len(text) > _LONGEST:
        raise ValueError(
            f"The list {text[:20]}… has {len(text):,} characters, but a link holds at most {_LONGEST:,} of a "
            "setting. Copy the run as Python, or save its JSON, instead."
        )
    return text


@dataclass(frozen=True)
class ValueType:
    """Conversions of values of one type in links.

    Attributes
    ----------
    to_text : callable
        Converts a value to text without loss.
    from_text : callable
        Converts text to a value. Invalid text may be returned unchanged: the setting rejects it.
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
    "list": ValueType(_list_to_text, _unless_wrong(json.loads)),
    # "none" is the empty choice; a missing parameter means the default.
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
"""Conversions by kind of setting: those of `fmviz.engine.settings.ParamSpec` and of pages."""

_KINDS = {bool: "bool", int: "int", float: "float", tuple: "list"}


def to_query(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return settings as query parameters of a link; raises ValueError for lists that are too long."""
    return {name: TYPES[_KINDS.get(type(value), "text")].to_text(value) for name, value in settings.items()}


def plain(value: Any, *, finite: bool = True) -> Any:
    """Convert a value recursively to JSON types; with `finite`, NaN and infinities become None."""
    if isinstance(value, Mapping):
        return {str(name): plain(item, finite=finite) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, finite=finite) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        value = value.item()
    return None if finite and isinstance(value, float) and not math.isfinite(value) else value


def to_python(value: Any) -> str:
    """Return a value as Python source, named tuples as plain ones."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, tuple):
        value = tuple(tuple(item) if isinstance(item, tuple) else item for item in value)
    return pformat(value, sort_dicts=False, width=96)
