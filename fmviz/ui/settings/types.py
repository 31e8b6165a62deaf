"""Types of settings besides `ParamSpec`, and how a link writes the values of all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from fmviz.engine.errors import one_of, whole_number
from fmviz.engine.schedule import Change, changes_of
from fmviz.engine.settings import ParamSpec
from fmviz.lab.values import TYPES


@dataclass(frozen=True)
class Several:
    """A setting that holds several of some choices, always in the order of the choices."""

    name: str
    default: tuple[str, ...]
    choices: tuple[str, ...]
    help: str = ""
    kind: ClassVar[str] = "choices"

    def check(self, value: Any) -> tuple[str, ...]:
        """Return the chosen names in order, or raise ValueError."""
        chosen = {one_of(self.name, item, self.choices) for item in value}
        return tuple(choice for choice in self.choices if choice in chosen)


@dataclass(frozen=True)
class Text:
    """A setting of free text; text longer than `limit` characters stays out of the query string."""

    name: str
    default: str = ""
    limit: int = 1500
    help: str = ""
    kind: ClassVar[str] = "text"

    def check(self, value: Any) -> str:
        """Return the text."""
        return str(value)


@dataclass(frozen=True)
class Whole:
    """A setting that holds several different whole numbers from 0, in the order given."""

    name: str
    default: tuple[int, ...] = ()
    help: str = ""
    kind: ClassVar[str] = "numbers"

    def check(self, value: Any) -> tuple[int, ...]:
        """Return the numbers, or raise ValueError."""
        if isinstance(value, str):
            raise ValueError(
                f"{self.name} = {value!r} is not a list of whole numbers from 0; write them as 3,5."
            )
        return tuple(dict.fromkeys(whole_number(self.name, item, 0) for item in value))


@dataclass(frozen=True)
class Names:
    """The controls and parts of a page that a link hides, or locks."""

    name: str
    default: tuple[str, ...] = ()
    help: str = ""
    kind: ClassVar[str] = "names"

    def check(self, value: Any) -> tuple[str, ...]:
        """Return the names, each once."""
        return tuple(dict.fromkeys(str(item).strip() for item in value if str(item).strip()))


@dataclass(frozen=True)
class Follower(ParamSpec):
    """A setting that follows something else, and so stays out of the query string."""


@dataclass(frozen=True)
class Changes:
    """A setting that holds changes of strengths during a run, see `fmviz.engine.schedule`."""

    name: str
    default: tuple[Change, ...] = ()
    help: str = ""
    kind: ClassVar[str] = "changes"

    def check(self, value: Any) -> tuple[Change, ...]:
        """Return the changes in order, or raise ValueError."""
        return changes_of(value)


Setting = ParamSpec | Several | Text | Whole | Names | Changes


def from_link(setting: Setting, text: str) -> Any:
    """Return the value of a setting that a query string spells, or raise ValueError."""
    return setting.check(TYPES[setting.kind].from_text(text))


def to_link(setting: Setting, value: Any) -> str | None:
    """Return the value of a setting as a query string spells it, or None where it stays out of it."""
    if isinstance(setting, Follower) or (isinstance(setting, Text) and len(value) > setting.limit):
        return None
    return TYPES[setting.kind].to_text(value) or None
