"""Types of settings: what values they take, and how a query string spells them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from fmviz.engine.errors import one_of, whole_number
from fmviz.engine.schedule import Change, changes_of
from fmviz.engine.settings import ParamSpec
from fmviz.lab.values import TYPES, ValueType


class _Spelt(ABC):
    """A setting whose values are written in a link as those of its `type` are."""

    @property
    @abstractmethod
    def type(self) -> ValueType:
        """How its values are written."""

    @abstractmethod
    def check(self, value: Any) -> Any:
        """Return a valid value in its canonical type, or raise ValueError."""

    def parse(self, text: str) -> Any:
        """Return the value that a query string spells, or raise ValueError."""
        return self.check(self.type.from_text(text))

    def format(self, value: Any) -> str | None:
        """Return the value as the query string spells it, or None to leave it out."""
        return self.type.to_text(value) or None


@dataclass(frozen=True)
class Param(_Spelt):
    """A setting described by a ParamSpec; tables may hold the ParamSpec itself."""

    spec: ParamSpec

    @property
    def name(self) -> str:
        """Return the name, also that in the query string."""
        return self.spec.name

    @property
    def default(self) -> Any:
        """Return the value taken where the link says nothing."""
        return self.spec.default

    @property
    def help(self) -> str:
        """Return what the declaration says to the reader."""
        return self.spec.help

    @property
    def type(self) -> ValueType:
        """How its values are written."""
        return TYPES[self.spec.kind]

    def check(self, value: Any) -> Any:
        """Return a valid value in its canonical type, or raise ValueError."""
        return self.spec.check(value)


@dataclass(frozen=True)
class Several(_Spelt):
    """A setting that holds several of some choices, always in the order of the choices."""

    name: str
    default: tuple[str, ...]
    choices: tuple[str, ...]
    help: str = ""
    type = TYPES["choices"]

    def check(self, value: Any) -> tuple[str, ...]:
        """Return the chosen names in order, or raise ValueError."""
        chosen = {one_of(self.name, item, self.choices) for item in value}
        return tuple(choice for choice in self.choices if choice in chosen)


@dataclass(frozen=True)
class Text(_Spelt):
    """A setting of free text; text longer than `limit` characters stays out of the query string."""

    name: str
    default: str = ""
    limit: int = 1500
    help: str = ""
    type = TYPES["text"]

    def check(self, value: Any) -> str:
        """Return the text."""
        return str(value)

    def format(self, value: Any) -> str | None:
        """Return the text, or None if it is too long for a link."""
        return value if len(value) <= self.limit else None


@dataclass(frozen=True)
class Whole(_Spelt):
    """A setting that holds several different whole numbers from 0, in the order given."""

    name: str
    default: tuple[int, ...] = ()
    help: str = ""
    type = TYPES["numbers"]

    def check(self, value: Any) -> tuple[int, ...]:
        """Return the numbers, or raise ValueError."""
        if isinstance(value, str):
            raise ValueError(
                f"{self.name} = {value!r} is not a list of whole numbers from 0; write them as 3,5."
            )
        return tuple(dict.fromkeys(whole_number(self.name, item, 0) for item in value))


@dataclass(frozen=True)
class Names(_Spelt):
    """The controls and parts of a page that a link hides, or locks."""

    name: str
    default: tuple[str, ...] = ()
    help: str = ""
    type = TYPES["names"]

    def check(self, value: Any) -> tuple[str, ...]:
        """Return the names, each once."""
        return tuple(dict.fromkeys(str(item).strip() for item in value if str(item).strip()))


@dataclass(frozen=True)
class Follower(Param):
    """A setting that follows something else, and so stays out of the query string."""

    def format(self, value: Any) -> str | None:
        """Return None."""
        return None


@dataclass(frozen=True)
class Changes(_Spelt):
    """A setting that holds changes of strengths during a run, see `fmviz.engine.schedule`."""

    name: str
    default: tuple[Change, ...] = ()
    help: str = ""
    type = TYPES["changes"]

    def check(self, value: Any) -> tuple[Change, ...]:
        """Return the changes in order, or raise ValueError."""
        return changes_of(value)


Setting = Param | Several | Text | Whole | Names | Changes
