"""Settings of a page: a typed table, stored in the session and synchronized with the address.

A setting has its own session key, separate from its widget: Streamlit drops widget state when another page
is drawn. `Settings.bind` connects a widget with a setting. The query string contains the level and every
setting that differs from its default; a link therefore restores the page.

In a page::

    TABLE = (ParamSpec("rank", "int", 10, 1, 200, help="Columns of P."), Text("note"))
    settings = Settings("train", TABLE)  # stateless: create one wherever needed
    settings.read_url()  # `shell.page` does this
    widgets.param(settings, "rank")  # or widgets.control, for a widget of another kind
    settings["rank"], settings["seed"], settings["dataset"]

A link can also hide and lock controls, ``hide=rank,solver&lock=dataset``. Controls that the page declares as
`expert` are drawn only for ``level=expert`` and in lessons, which hide controls themselves.
`fmviz.ui.widgets` applies both rules; a page only declares its buttons and sections (`parts`) and its expert
settings::

    settings = Settings("train", TABLE, parts=("play", "exports"), expert=("rank",))
    if settings.shows("exports", "Downloads"):
        draw_exports()
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import streamlit as st

from fmviz.engine.errors import one_of, whole_number
from fmviz.engine.schedule import Change, changes_of
from fmviz.engine.settings import ParamSpec
from fmviz.lab.catalog import DatasetParam
from fmviz.lab.datasets import DATASETS
from fmviz.lab.values import TYPES


@dataclass(frozen=True)
class Several:
    """A subset of some choices, always in the order of the choices."""

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
    """Free text; text longer than `limit` characters is omitted from the query string."""

    name: str
    default: str = ""
    limit: int = 1500
    help: str = ""
    kind: ClassVar[str] = "text"

    def check(self, value: Any) -> str:
        """Return the text."""
        return str(value)


@dataclass(frozen=True)
class Listed:
    """A setting with any number of values, by default none."""

    name: str
    default: tuple[Any, ...] = ()
    help: str = ""


@dataclass(frozen=True)
class Whole(Listed):
    """A list of distinct nonnegative integers, in the given order."""

    kind: ClassVar[str] = "numbers"

    def check(self, value: Any) -> tuple[int, ...]:
        """Return the numbers, or raise ValueError."""
        if isinstance(value, str):
            raise ValueError(f"{self.name} = {value!r} is not a list of nonnegative integers, such as 3,5.")
        return tuple(dict.fromkeys(whole_number(self.name, item, 0) for item in value))


@dataclass(frozen=True)
class Names(Listed):
    """The controls and parts of a page hidden or locked by a link."""

    kind: ClassVar[str] = "names"

    def check(self, value: Any) -> tuple[str, ...]:
        """Return the names without duplicates."""
        return tuple(dict.fromkeys(str(item).strip() for item in value if str(item).strip()))


@dataclass(frozen=True)
class Follower(ParamSpec):
    """A derived setting, omitted from the query string."""


@dataclass(frozen=True)
class Changes(Listed):
    """Changes of strengths during a run, see `fmviz.engine.schedule`."""

    kind: ClassVar[str] = "changes"

    def check(self, value: Any) -> tuple[Change, ...]:
        """Return the changes in order, or raise ValueError."""
        return changes_of(value)


Setting = ParamSpec | Several | Text | Whole | Names | Changes


def from_link(setting: Setting, text: str) -> Any:
    """Return the value of a setting from a query string, or raise ValueError."""
    return setting.check(TYPES[setting.kind].from_text(text))


def to_link(setting: Setting, value: Any) -> str | None:
    """Return the value of a setting for a query string, or None if it is omitted."""
    if isinstance(setting, Follower) or (isinstance(setting, Text) and len(value) > setting.limit):
        return None
    return TYPES[setting.kind].to_text(value) or None


_ARRIVED = "fmviz:arrived"
_SETTINGS = "fmviz:settings"
_DRAWN = "fmviz:drawn"


RESTRICTIONS: tuple[Names, ...] = (
    Names("hide", help="Controls that are not drawn; hidden settings keep their values."),
    Names("lock", help="Controls that are drawn but cannot be changed."),
)
"""The settings by which links restrict a page; every page has them."""

LEVELS = ("simple", "expert")
LEVEL_COOKIE = "fmviz-level"
"""The cookie with the chosen level."""
SHARED: tuple[Setting, ...] = (
    DatasetParam(
        "dataset",
        "choice",
        next(iter(DATASETS)),
        choices=tuple(DATASETS),
        help="Data set of the experiments.",
    ),
    ParamSpec(
        "seed",
        "int",
        0,
        0,
        999_999,
        help="Seed of the random number generator. The same seed gives the same results.",
    ),
    ParamSpec(
        "level",
        "choice",
        "simple",
        choices=LEVELS,
        help="Simple hides advanced pages and controls; hidden settings keep their values. This browser "
        "remembers Expert.",
    ),
    Text("lesson", help="Lesson shown beside the page."),
    ParamSpec("step", "int", 1, 1, 99, help="Step of the lesson."),
)
"""The settings common to all pages."""
_FOLLOWED = "fmviz:followed"
_LEAVING = "fmviz:leaving"
_BARE = "fmviz:bare"


class Settings:
    """The settings of a page together with the shared settings.

    Parameters
    ----------
    page : str
        Short name, the prefix of session and widget keys.
    table : iterable of ParamSpec, Several, Text or Whole
        The settings of this page.
    parts : iterable of str
        Buttons and sections that links can hide or lock.
    expert : iterable of str
        Names of `table` and `parts` drawn only for ``level=expert``.
    unread : iterable of str
        Shared settings that this page does not use; they keep their values and are not drawn.
    """

    def __init__(
        self,
        page: str,
        table: Iterable[Setting] = (),
        *,
        parts: Iterable[str] = (),
        expert: Iterable[str] = (),
        unread: Iterable[str] = (),
    ) -> None:
        self.page = page
        self.own: dict[str, Setting] = {item.name: item for item in table}
        self.table: dict[str, Setting] = {item.name: item for item in (*SHARED, *RESTRICTIONS)} | self.own
        self.parts = tuple(parts)
        self.expert = frozenset(expert)
        self.unread = frozenset(unread)
        self._brought_key, self._notice_key = f"fmviz:{page}:brought", f"fmviz:{page}:notices"
        reserved = {item.name for item in (*SHARED, *RESTRICTIONS)} & set(self.own)
        if reserved:
            raise ValueError(f"page {page!r} has a setting {min(reserved)!r}, a reserved name.")

    def _owner(self, name: str) -> str:
        return "shared" if any(item.name == name for item in SHARED) else self.page

    def _home(self, name: str) -> str:
        return f"fmviz:{self._owner(name)}:{name}"

    def __getitem__(self, name: str) -> Any:
        """Return the current value of a setting."""
        return st.session_state.get(self._home(name), self.table[name].default)

    def as_dict(self, *names: str) -> dict[str, Any]:
        """Return the values of some settings, by default all."""
        return {name: self[name] for name in names or self.table}

    def spec(self, name: str) -> ParamSpec:
        """Return the ParamSpec of a setting."""
        item = self.table[name]
        if not isinstance(item, ParamSpec):
            raise TypeError(f"setting {name!r} has no ParamSpec")
        return item

    def set(self, **values: Any) -> None:
        """Change settings; if a value is invalid, raise ValueError and change nothing."""
        checked = {self._home(name): self.table[name].check(value) for name, value in values.items()}
        for home, value in checked.items():
            st.session_state[home] = value
        st.session_state.pop(self._notice_key, None)

    def reset(self, *names: str) -> None:
        """Reset some settings, by default all of the page, to their defaults."""
        self.set(**{name: self.table[name].default for name in names or self.own})

    # ---------------------------------------------------------------------------- hidden, locked, expert

    def shows(self, name: str, words: str = "") -> bool:
        """Return whether to draw a control or part; `words` is its label."""
        if name not in self.controls:
            raise KeyError(f"page {self.page!r} has neither a setting nor a part {name!r}")
        if name in self.unread or (name in self.expert and not self.is_expert):
            return False
        if words:
            self._words[name] = words
        return name not in self["hide"]

    def shows_any(self, *names: str) -> bool:
        """Return whether any of some controls is drawn, and a heading or box is needed."""
        return any(self.shows(name) for name in names)

    def locks(self, name: str) -> bool:
        """Return whether a control or part is drawn but disabled."""
        return name in self["lock"]

    @property
    def controls(self) -> Collection[str]:
        """The names that a link can hide or lock."""
        fixed = {"lesson", "step", *(item.name for item in RESTRICTIONS)}
        return [*(name for name in self.table if name not in fixed), *self.parts]

    @property
    def seen(self) -> dict[str, str]:
        """The controls and parts drawn by this page in this session, with their labels."""
        return {name: words for name, words in self._words.items() if name in self.controls}

    @property
    def _words(self) -> dict[str, str]:
        return st.session_state.setdefault(f"fmviz:{self.page}:words", {})

    @property
    def shortcuts(self) -> dict[str, str]:
        """Keyboard shortcuts of the buttons of this page, with labels; reset by `shell.page`."""
        return st.session_state.setdefault("fmviz:shortcuts", {})

    @property
    def is_expert(self) -> bool:
        """Whether all controls are drawn. Lessons hide controls themselves."""
        return self["level"] == "expert" or bool(self["lesson"])

    # ----------------------------------------------------------------------------------------- widgets

    def key(self, name: str) -> str:
        """Return the key of the widget of a setting, for instance ``"prox_seed"``."""
        return f"{self._owner(name)}_{name}"

    def bind(self, name: str, then: Callable[[], None] | None = None) -> dict[str, Any]:
        """Return the keywords ``key`` and ``on_change`` of a widget for a setting.

        Pages draw widgets by `fmviz.ui.widgets.control`, which also hides and locks them. Do not pass a
        value to the widget as well. `then` is called after a change.
        """
        key, value = self.key(name), self[name]
        shown = list(value) if isinstance(value, tuple) else value
        # Assign only differing values: an assignment makes the browser discard input in progress. On a newly
        # opened page the key may still have the value of the last page's widget, which the new widget
        # ignores.
        drawn: set[str] = st.session_state.setdefault(_DRAWN, set())
        if key not in drawn or st.session_state.get(key) != shown:
            drawn.add(key)
            st.session_state[key] = shown

        def store() -> None:
            # *More* is no value, and a select box returns the label of an option if it has changed since.
            with suppress(ValueError):
                if (new := st.session_state.get(key)) is not None:
                    self.set(**{name: new})
            if then is not None:
                then()

        return {"key": key, "on_change": store}

    # ------------------------------------------------------------------------------------ address bar

    def query(self, **changes: Any) -> dict[str, str]:
        """Return the query parameters of a link to the current state with some settings changed."""
        out = {}
        for name, item in self.table.items():
            value = item.check(changes[name]) if name in changes else self[name]
            # Without a level, a link opens in the reader's level.
            if (value != item.default or name == "level") and (text := to_link(item, value)) is not None:
                out[name] = text
        return out

    def link(self, **changes: Any) -> dict[str, str]:
        """Return the query parameters of a link to the defaults with some settings changed."""
        texts = {name: to_link(self.table[name], self.table[name].check(v)) for name, v in changes.items()}
        return {name: text for name, text in texts.items() if text is not None}

    @classmethod
    def arriving(cls, page: str) -> dict[str, str] | None:
        """Return the query string that opens a page, or None if it has been read already.

        At every script run, the browser repeats the query string by which it was opened, or one written
        since.
        """
        if (followed := st.session_state.get(_FOLLOWED)) is not None:
            return dict(followed)
        given = st.query_params.to_dict()
        here, known = st.session_state.get(_ARRIVED, ("", set()))
        return None if here == page and frozenset(given.items()) in known else given

    @staticmethod
    def drawn() -> Settings:
        """Return the settings of the current page."""
        return st.session_state[_SETTINGS]

    def written(self) -> dict[str, str]:
        """Return the query string for the address bar; when the browser repeats it, it is not a link."""
        query = self.query()
        st.session_state[_ARRIVED][1].add(frozenset(query.items()))
        return query

    def read_url(self) -> bool:
        """Load the settings of a link on arrival; return whether there was a link.

        Omitted settings get their defaults. Invalid values are replaced by defaults, with an entry in
        `notices`. Within a session, a query with only the level is not a link.
        """
        st.session_state[_SETTINGS] = self
        given = self.arriving(self.page)
        if given is None:
            return False
        came = _ARRIVED not in st.session_state
        st.session_state[_BARE] = "lesson" in given and set(given) <= {"lesson", "step", "level"}
        within = not came and set(given) <= {"level"}
        opened = came or st.session_state[_ARRIVED][0] != self.page
        st.session_state.pop(_FOLLOWED, None)
        known = set() if opened else st.session_state[_ARRIVED][1]
        st.session_state[_ARRIVED] = self.page, known | {frozenset(st.query_params.to_dict().items())}
        if opened:
            st.session_state[_DRAWN] = set()
            st.session_state.pop(self._notice_key, None)
            if (level := st.context.cookies.get(LEVEL_COOKIE)) in LEVELS:
                st.session_state.setdefault(self._home("level"), level)
        if given:
            notices = []
            for name, item in self.table.items():
                value = item.default
                if name not in given and (within or name == "level"):
                    continue
                if name in given:
                    try:
                        value = from_link(item, given[name])
                    except ValueError as error:
                        shown = to_link(item, value)
                        taken = "It was ignored." if shown is None else f"Using {name} = {shown} instead."
                        notices.append(f"From the link: {error} {taken}")
                st.session_state[self._home(name)] = value
            notices += [
                f"The link sets {name!r}, which does not exist on this page; it was ignored."
                for name in given
                if name not in self.table
            ]
            notices += [
                f"The link should {item.name} {name!r}, which does not exist on this page; it was ignored."
                for item in RESTRICTIONS
                for name in self[item.name]
                if name not in self.controls
            ]
            st.session_state[self._notice_key] = notices
            st.session_state[self._brought_key] = frozenset(given)
        return bool(given) and not within

    @staticmethod
    def move(query: Mapping[str, str], script: str | None = None) -> None:
        """Open a link; a button callback.

        On the same page the query string is read as a link. Another page, given by `script`, opens before
        this one draws anything.
        """
        if script is None:
            st.session_state[_FOLLOWED] = dict(query)
        else:
            st.session_state[_LEAVING] = script, dict(query)

    @staticmethod
    def leave() -> None:
        """Switch to the page requested by `move`, if it is another one."""
        if (there := st.session_state.pop(_LEAVING, None)) is not None:
            script, query = there
            st.switch_page(script, query_params=query)

    @staticmethod
    def names_a_lesson_alone() -> bool:
        """Return, once, whether the last link contained only a lesson and its step."""
        return bool(st.session_state.pop(_BARE, False))

    @staticmethod
    def free(*pages: str) -> None:
        """Show and unlock all controls on some pages."""
        for page in pages:
            for item in RESTRICTIONS:
                st.session_state.pop(f"fmviz:{page}:{item.name}", None)

    @property
    def brought(self) -> frozenset[str]:
        """The settings of the last link, including defaults, which the address bar omits."""
        return frozenset(st.session_state.get(self._brought_key, ()))

    @property
    def notices(self) -> list[str]:
        """Messages about invalid values of the link, cleared by the next change."""
        return list(st.session_state.get(self._notice_key, ()))


Values: TypeAlias = Settings | Mapping[str, Any]
"""Read-only settings."""
