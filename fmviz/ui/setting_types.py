"""Types of settings: their values, and how a query string spells them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fmviz.engine.errors import one_of, whole_number
from fmviz.engine.schedule import Change, changes_of
from fmviz.engine.settings import ParamSpec
from fmviz.lab.runs.changes import changes_from_text, changes_to_text


@dataclass(frozen=True)
class Param:
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

    def check(self, value: Any) -> Any:
        """Return a valid value in its canonical type, or raise ValueError."""
        return self.spec.check(value)

    def parse(self, text: str) -> Any:
        """Return the value that a query string spells."""
        kind = self.spec.kind
        if kind == "bool":
            return self.check({"1": True, "true": True, "0": False, "false": False}.get(text.lower(), text))
        if kind in ("int", "float"):
            try:
                number = int(text) if kind == "int" else float(text)
            except ValueError:
                return self.check(text)
            return self.check(number)
        return self.check(text)

    def format(self, value: Any) -> str | None:
        """Return the value as the query string spells it, or None to leave it out."""
        if self.spec.kind == "bool":
            return "1" if value else "0"
        # str() of a float gives back the same float.
        return str(value)


@dataclass(frozen=True)
class Several:
    """A setting that holds several of some choices, always in the order of the choices."""

    name: str
    default: tuple[str, ...]
    choices: tuple[str, ...]
    help: str = ""

    def check(self, value: Any) -> tuple[str, ...]:
        """Return the chosen names in order, or raise ValueError."""
        chosen = {one_of(self.name, item, self.choices) for item in value}
        return tuple(choice for choice in self.choices if choice in chosen)

    def parse(self, text: str) -> tuple[str, ...]:
        """Return the names in a comma-separated list; "none" for no name at all."""
        return () if text == "none" else self.check([item.strip() for item in text.split(",")])

    def format(self, value: Any) -> str | None:
        """Return the names, separated by commas."""
        return ",".join(value) or "none"


@dataclass(frozen=True)
class Text:
    """A setting of free text; text longer than `limit` characters stays out of the query string."""

    name: str
    default: str = ""
    limit: int = 1500
    help: str = ""

    def check(self, value: Any) -> str:
        """Return the text."""
        return str(value)

    def parse(self, text: str) -> str:
        """Return the text."""
        return text

    def format(self, value: Any) -> str | None:
        """Return the text, or None if it is too long for a link."""
        return value if len(value) <= self.limit else None


@dataclass(frozen=True)
class Whole:
    """A setting that holds several different whole numbers from 0, in the order given."""

    name: str
    default: tuple[int, ...] = ()
    help: str = ""

    def check(self, value: Any) -> tuple[int, ...]:
        """Return the numbers, or raise ValueError."""
        return tuple(dict.fromkeys(whole_number(self.name, item, 0) for item in value))

    def parse(self, text: str) -> tuple[int, ...]:
        """Return the numbers in a comma-separated list."""
        try:
            return self.check([int(item) for item in text.split(",")])
        except ValueError:
            raise ValueError(
                f"{self.name} = {text!r} is not a list of whole numbers from 0; write them as 3,5."
            ) from None

    def format(self, value: Any) -> str | None:
        """Return the numbers, separated by commas, or None if there are none."""
        return ",".join(map(str, value)) or None


@dataclass(frozen=True)
class Names:
    """The controls and parts of a page that a link hides, or locks."""

    name: str
    default: tuple[str, ...] = ()
    help: str = ""

    def check(self, value: Any) -> tuple[str, ...]:
        """Return the names, each once."""
        return tuple(dict.fromkeys(str(item).strip() for item in value if str(item).strip()))

    def parse(self, text: str) -> tuple[str, ...]:
        """Return the names in a comma-separated list."""
        return self.check(text.split(","))

    def format(self, value: Any) -> str | None:
        """Return the names, separated by commas, or None if there are none."""
        return ",".join(value) or None


@dataclass(frozen=True)
class Follower(Param):
    """A setting that follows something else, and so stays out of the query string."""

    def format(self, value: Any) -> str | None:
        """Return None."""
        return None


@dataclass(frozen=True)
class Changes:
    """A setting that holds changes of strengths during a run, see `fmviz.engine.schedule`."""

    name: str
    default: tuple[Change, ...] = ()
    help: str = ""

    def check(self, value: Any) -> tuple[Change, ...]:
        """Return the changes in order, or raise ValueError."""
        return changes_of(value)

    def parse(self, text: str) -> tuple[Change, ...]:
        """Return the changes that a text tells."""
        return changes_from_text(text)

    def format(self, value: Any) -> str | None:
        """Return the changes as text, or None if there are none."""
        return changes_to_text(value) or None


Setting = Param | Several | Text | Whole | Names | Changes
