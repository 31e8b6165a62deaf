"""Settings of a page: one typed table, kept in the session and mirrored to the address bar.

A setting lives under a session key of its own, not under a widget's: Streamlit forgets a widget as soon as
another page is drawn. `Settings.bind` ties a widget to a setting and back. The query string carries every
setting that differs from its default, so that a link opens the page as it was.

Examples
--------
>>> TABLE = (ParamSpec("rank", "int", 10, 1, 200, help="Columns of P."), Text("note"))
>>> settings = Settings("train", TABLE)  # holds no state: make one wherever it is needed
>>> settings.read_url()  # `shell.page` does this
>>> st.number_input("Rank", 1, 200, **settings.bind("rank"))
>>> settings["rank"], settings["seed"], settings["dataset"]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from fmviz.engine.errors import one_of, whole_number
from fmviz.engine.params import ParamSpec
from fmviz.lab.datasets import DATASETS, DatasetParam

_PREFIX = "fmviz"
_PAGE = f"{_PREFIX}:page"
_WRITTEN = f"{_PREFIX}:written"
_DRAWN = f"{_PREFIX}:drawn"
# How long the browser may still send a query string that we have replaced since, in seconds.
_ECHO = 5.0
# How long a widget's value is assigned again and again after a change by the program, in seconds.
_SETTLE = 5.0


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


Setting = Param | Several | Text | Whole

SHARED: tuple[Setting, ...] = (
    Param(
        DatasetParam(
            "dataset",
            "choice",
            next(iter(DATASETS)),
            choices=tuple(DATASETS),
            help="The data that the experiments run on.",
        )
    ),
    Param(
        ParamSpec(
            "seed",
            "int",
            0,
            0,
            999_999,
            help="Whatever is drawn at random starts from this number. The same seed gives the same picture.",
        )
    ),
)
"""The settings that all pages share; the sidebar shows them."""


def _in_fragment() -> bool:
    """Return whether a fragment reruns alone; what is assigned there would undo a click in flight."""
    context = get_script_run_ctx()
    return bool(getattr(context, "fragment_ids_this_run", None))


class Settings:
    """The settings of one page together with the shared ones.

    Parameters
    ----------
    page : str
        A short name, the prefix of session and widget keys.
    table : iterable of ParamSpec, Several or Text
        What can be set on this page.
    """

    def __init__(self, page: str, table: Iterable[ParamSpec | Setting] = ()) -> None:
        own = [Param(item) if isinstance(item, ParamSpec) else item for item in table]
        self.page = page
        self.own: dict[str, Setting] = {item.name: item for item in own}
        self.table: dict[str, Setting] = {item.name: item for item in (*SHARED, *own)}

    def _home(self, name: str) -> str:
        if name not in self.table:
            raise KeyError(f"page {self.page!r} has no setting {name!r}; it has {', '.join(self.table)}")
        return f"{_PREFIX}:{self.page if name in self.own else 'shared'}:{name}"

    def __getitem__(self, name: str) -> Any:
        """Return the present value of a setting."""
        return st.session_state.get(self._home(name), self.table[name].default)

    def as_dict(self, *names: str) -> dict[str, Any]:
        """Return the values of the named settings, or of all."""
        return {name: self[name] for name in names or self.table}

    def spec(self, name: str) -> ParamSpec:
        """Return the ParamSpec behind a setting."""
        item = self.table[name]
        if not isinstance(item, Param):
            raise TypeError(f"setting {name!r} is not described by a ParamSpec")
        return item.spec

    def set(self, **values: Any) -> None:
        """Change settings and the address bar; ValueError, and no change at all, if a value is invalid."""
        checked = {self._home(name): self.table[name].check(value) for name, value in values.items()}
        for home, value in checked.items():
            st.session_state[home] = value
        st.session_state.pop(self._notice_key, None)
        self.write_url()

    def reset(self, *names: str) -> None:
        """Put the named settings, or all of the page's own, back to their defaults."""
        self.set(**{name: self.table[name].default for name in names or self.own})

    # ----------------------------------------------------------------------------------------- widgets

    def key(self, name: str) -> str:
        """Return the key of the widget that shows a setting, for instance ``"prox_seed"``."""
        return f"{self.page if name in self.own else 'shared'}_{name}"

    def bind(self, name: str, then: Callable[[], None] | None = None) -> dict[str, Any]:
        """Return the keywords ``key`` and ``on_change`` of a widget that shows and changes a setting.

        Do not pass a value to the widget as well. `then` is called after a change.
        """
        key, value = self.key(name), self[name]
        shown = list(value) if isinstance(value, tuple) else value
        # Assigning only what differs: an assignment makes the browser drop what is being typed or dragged.
        # On a page just opened the key may still hold the value of the last page's widget, which the new
        # widget does not take over.
        # And what is assigned goes to the browser with one run only: where the next run follows at once, as
        # at the end of a short job, the browser may never see it, starts the widget at its empty default,
        # and reports that as a change. So assign for a while.
        drawn: dict[str, float] = st.session_state.setdefault(_DRAWN, {})
        now = time.monotonic()
        if key not in drawn or key not in st.session_state or st.session_state[key] != shown:
            drawn[key] = now
        if now == drawn[key] or (now - drawn[key] < _SETTLE and not _in_fragment()):
            st.session_state[key] = shown

        def store() -> None:
            drawn[key] = now - _SETTLE  # The browser has seen it.
            new = st.session_state.get(key)
            if new is not None and not self._stale(name, new):
                self.set(**{name: new})
            if then is not None:
                then()

        return {"key": key, "on_change": store}

    def _stale(self, name: str, value: Any) -> bool:
        """Return whether a select box brings back the words of an option instead of the option.

        So it does where the words have changed since it was drawn, and calls that a change.
        """
        if not getattr(getattr(self.table[name], "spec", None), "choices", ()):
            return False
        try:
            self.table[name].check(value)
        except ValueError:
            return True
        return False

    # ------------------------------------------------------------------------------------ address bar

    def query(self, **changes: Any) -> dict[str, str]:
        """Return the query parameters of a link to the present state with some settings changed."""
        out = {}
        for name, item in self.table.items():
            value = item.check(changes[name]) if name in changes else self[name]
            if value != item.default and (text := item.format(value)) is not None:
                out[name] = text
        return out

    def link(self, **changes: Any) -> dict[str, str]:
        """Return the query parameters of a link to the defaults with some settings changed."""
        texts = {name: self.table[name].format(self.table[name].check(v)) for name, v in changes.items()}
        return {name: text for name, text in texts.items() if text is not None}

    def write_url(self) -> None:
        """Mirror the settings to the address bar."""
        wanted = self.query()
        if wanted != st.query_params.to_dict():
            st.query_params.from_dict(wanted)
        self._remember(wanted)

    def _remember(self, query: Mapping[str, str]) -> None:
        now = time.monotonic()
        log: list[tuple[float, dict[str, str]]] = st.session_state.setdefault(_WRITTEN, [])
        log[:] = [entry for entry in log if now - entry[0] < _ECHO]
        log.append((now, dict(query)))

    def read_url(self) -> bool:
        """Take over the settings that a link brings; return whether there was a link.

        A query string is a link where the page has just been opened, or where it is not one that this page
        wrote itself a moment ago. What a link leaves out gets its default. An invalid value is replaced by
        the default, and `notices` says so.
        """
        given = st.query_params.to_dict()
        opened = st.session_state.get(_PAGE) != self.page
        if opened:
            st.session_state[_PAGE] = self.page
            st.session_state[_WRITTEN] = []
            st.session_state[_DRAWN] = {}
            st.session_state.pop(self._notice_key, None)
        echoes = [query for _, query in st.session_state.get(_WRITTEN, [])[-64:]]
        linked = bool(given) and (opened or given not in echoes)
        if linked:
            notices = []
            for name, item in self.table.items():
                value = item.default
                if name in given:
                    try:
                        value = item.parse(given[name])
                    except ValueError as error:
                        shown = item.format(value)
                        notices.append(f"From the link: {error} Taken instead: {name} = {shown}.")
                st.session_state[self._home(name)] = value
            notices += [
                f"The link sets {name!r}, which this page does not have; it was ignored."
                for name in given
                if name not in self.table
            ]
            st.session_state[self._notice_key] = notices
            st.session_state[self._brought_key] = frozenset(given)
        self.write_url()
        return linked

    @property
    def _brought_key(self) -> str:
        return f"{_PREFIX}:{self.page}:brought"

    @property
    def brought(self) -> frozenset[str]:
        """The names that the last link set, be it to their defaults, which the address bar leaves out."""
        return frozenset(st.session_state.get(self._brought_key, ()))

    @property
    def _notice_key(self) -> str:
        return f"{_PREFIX}:{self.page}:notices"

    @property
    def notices(self) -> list[str]:
        """The sentences about values of the link that could not be taken; gone after the next change."""
        return list(st.session_state.get(self._notice_key, ()))
