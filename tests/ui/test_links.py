"""A link opened in a fresh session gives every page's state and numbers again."""

from __future__ import annotations

import itertools
import re
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pandas as pd
import pytest
from fuzzing import MARKUP
from inline_executor import InlineExecutor
from streamlit.testing.v1 import AppTest
from ui.driving import PAGES, elements_of, figures, finish, page, written

from fmviz.lab.background import tasks
from fmviz.lab.background.tasks import TaskManager
from fmviz.lab.background.workers import WORKERS
from fmviz.lab.store import RunStore
from fmviz.ui import shell
from fmviz.ui.settings.state import Changes, Follower, Names, Setting, Settings, Several, Text, Whole, to_link

# What cannot be guessed: small data, and texts that a page understands.
MARKDOWN = ("title", "header", "subheader", "markdown", "caption", "info", "success", "warning", "error")
GIVEN: dict[str, str] = {
    "dataset": "balance_scale",
    "matrix": "1 2\n3 -4\n0.5 0.1\n",
    "max_epochs": "7",
}


@pytest.fixture
def seen(monkeypatch) -> list[Settings]:
    """The settings of the pages that were drawn, the last one last."""
    result: list[Settings] = []
    real = shell.page

    @contextmanager
    def noted(title: str, settings: Settings) -> Any:
        result.append(settings)
        with real(title, settings) as same:
            yield same

    monkeypatch.setattr(shell, "page", noted)
    monkeypatch.setattr(WORKERS, "most", 0)
    return result


def other(item: Setting) -> str | None:
    """Return a value that is not the default, as a link spells it."""
    if item.name in GIVEN:
        return GIVEN[item.name]
    match item:
        case Several():
            chosen = item.choices[-2:] if tuple(item.choices[-2:]) != item.default else item.choices[:1]
            return to_link(item, chosen)
        case Whole():
            return "0,1"
        case Names():
            return "seed" if item.name == "hide" else "dataset"
        case Changes():
            return "3:lambda_p:0.5"
        case Text() | Follower():
            return None
    if item.kind == "bool":
        return to_link(item, not item.default)
    if item.kind == "choice":
        return next((str(choice) for choice in reversed(item.choices) if choice != item.default), None)
    step = 1 if item.kind == "int" else (abs(item.default) / 4 or 0.01)
    for value in (item.default + step, item.default - step):
        try:
            return to_link(item, item.check(value))
        except ValueError:
            continue
    return None


def query_of(app: AppTest) -> dict[str, str]:
    """Return what the address bar says, without the name that a server gives to a run."""
    return {name: text for name, text in written(app).items() if name != "run"}


def state_of(app: AppTest, settings: Settings) -> dict[str, Any]:
    linked = (name for name, item in settings.table.items() if not isinstance(item, Follower))
    homes = {name: settings._home(name) for name in linked if name != "run"}
    return {
        name: app.session_state[home] if home in app.session_state else settings.table[name].default
        for name, home in homes.items()
    }


def all_texts(app: AppTest) -> list[str]:
    """Return all texts and tables of the page but times and the names of runs."""
    parts = [*app.title, *app.subheader, *app.markdown, *app.caption, *app.warning, *app.error]
    texts = [part.value for part in parts]
    texts += [f"{item.label} {item.value}" for item in app.metric if item.label != "Solver time"]
    texts += [f"{label} {value}" for label, value in figures(app).items() if label != "Solver time"]
    texts += [re.sub(r"&run=[\w-]+", "", item.value) for item in app.code if item.language == "python"]
    for item in app.dataframe:
        frame = item.value
        kept = [name for name in frame if not re.search("second|when|run|id", str(name), re.IGNORECASE)]
        texts.append(pd.DataFrame(frame[kept]).to_csv())
    return sorted(re.sub(r"\d+(\.\d+)? m?s\b|&run=[\w-]+", "…", text) for text in texts)


def active(app: AppTest) -> list[str]:
    """Return the texts of a page in which an address of somebody else is a link, a picture or a formula."""
    result = []
    for item in (element for element in elements_of(app._tree) if element.type not in ("code", "page_link")):
        parts = [getattr(item, name, "") for name in ("label", "help")]
        parts += [getattr(item, "value", "")] if item.type in MARKDOWN else []
        result += [text for text in parts if isinstance(text, str) and re.search(r"\w://x\.|www\.x", text)]
    return result


def fresh_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    """Forget all runs, as a server elsewhere that a link is sent to."""
    store = RunStore(folder / "elsewhere.sqlite")
    monkeypatch.setenv("FMVIZ_STORE", str(folder / "elsewhere.sqlite"))
    tasks._manager = TaskManager(InlineExecutor(), open_store=lambda: store)
    return store


@pytest.mark.sample(7)
@pytest.mark.parametrize("name", PAGES)
def test_every_setting_of_every_page_goes_through_its_link(store, seen, name, tmp_path, monkeypatch):
    page(name)
    query: dict[str, str] = {}
    # What can be set may depend on what is set, such as the parameters of a model.
    for _ in range(2):
        table = seen[-1].table
        query = {name: text for name, item in table.items() if (text := other(item)) is not None}
        first = page(name, **query)
        if seen[-1].table.keys() == table.keys():
            break
    settings = seen[-1]
    query = {name: text for name, text in query.items() if name in settings.table}
    state, link = state_of(first, settings), query_of(first)
    changed = [name for name in query if state.get(name) != settings.table[name].default]
    # A page may turn away what does not go together, but not most of it.
    assert len(changed) >= len(query) / 2, set(query) - set(changed)
    elsewhere = fresh_server(tmp_path, monkeypatch)
    second = page(name, **link)
    assert state_of(second, seen[-1]) == state
    assert query_of(second) == link
    assert not [text for text in all_texts(second) if "From the link" in text or "The link sets" in text]
    if "run" not in written(first):
        assert all_texts(second) == all_texts(first)
    elsewhere.close()


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", PAGES)
def test_markup_of_a_link_is_text(store, seen, name):
    """Each text in turn in every setting that a page has, and in those that it has not."""
    page(name)
    given = [*seen[-1].table, "run", *MARKUP]
    for begin in (0, 3, 7):
        texts = itertools.islice(itertools.cycle(MARKUP), begin, None)
        query = dict(zip(given, texts, strict=False))
        assert not active(page(name, **query)), query


@pytest.mark.browser
def test_no_link_makes_a_browser_ask_elsewhere(new_page, server, wait_idle):
    page = new_page()
    picture, link = MARKUP[:2]
    for script in ("train", "interactions", "data"):
        names = ("rank", "regularizer", "run", "dataset", "file", "title", "find", "lesson", picture)
        query = {name: (picture, link)[place % 2] for place, name in enumerate(names)}
        page.goto(f"{server.url}/{script}?{urlencode(query)}")
        wait_idle(page)
        assert "x.invalid" in page.locator('[data-testid="stMain"]').inner_text()
        assert page.locator('[href^="http://x."], [src^="http://x."]').count() == 0


STATES = {
    "prox": (
        "prox",
        {"d": "30", "k": "4", "seed": "5", "log2lambda": "-1", "regularizers": "ti,cs"},
        "",
    ),
    "prox, pasted": (
        "prox",
        {"source": "pasted", "matrix": GIVEN["matrix"], "regularizers": "l1,omega_ti", "log2lambda": "0"},
        "",
    ),
    "train": (
        "train",
        {"dataset": "balance_scale", "rank": "3", "lambda_sparse": "0.001", "seed": "4", "validation": "0.2"},
        "train_play",
    ),
    "train, third order": (
        "train",
        {"dataset": "balance_scale", "model": "hofm", "max_epochs": "9", "x": "seconds"},
        "train_play",
    ),
    "path": (
        "path",
        {
            "dataset": "balance_scale",
            "rank": "3",
            "points": "3",
            "penalties": "ti,cs",
            "seed": "2",
        },
        "path_start",
    ),
    "geometry": ("geometry", {"plane": "diagonal", "a": "-0.4", "strength": "1.1", "e2": "3.0"}, ""),
    "paper": ("paper", {"artefact": "atarashi2021_fig2"}, ""),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", STATES)
def test_results_come_back_with_their_numbers(store, seen, name, tmp_path, monkeypatch):
    opened, query, press = STATES[name]
    first = page(opened, **query)
    if press:
        finish(first, press)
    link = written(first)
    elsewhere = fresh_server(tmp_path, monkeypatch)
    second = page(opened, **link)
    second.run()
    again = [text for text in all_texts(second) if "not on this server" not in text]
    assert again == all_texts(first)
    assert state_of(second, seen[-1]) == state_of(first, seen[-1])
    elsewhere.close()
