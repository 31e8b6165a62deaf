"""What pages say, kept in one file a page: tests/ui/sentences/<page>.txt.

A file has a section for each state of its page that a test asks for. The section ``default`` holds all texts
of the page as a reader finds it first, and ``several`` what three or more states say beyond that; the others
hold what their state says beyond both. Numbers are written as #: the tests of the page assert them. After a
change of wording

    python -m pytest tests/ui -m "not browser" --update-sentences

writes the files anew, and the difference is read like that of any source.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from streamlit.testing.v1 import AppTest
from ui.driving import decode, elements_of

FOLDER = Path(__file__).with_name("sentences")
DEFAULT, SEVERAL = "default", "several"
_NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:[.,]\d+)*(?:e[-+]?\d+|·10[⁻⁰¹²³⁴-⁹]+)?(?:(?= m?s\b) m?s)?")
# Folders of this run: where tests keep their files.
_FOLDERS = re.compile(re.escape(gettempdir()) + r"(?:/[^\s/]+)*/")
_MARKUP = re.compile(r"[\\$]|\*\*|:material/")
_SPOKEN = ("title", "header", "subheader", "markdown", "caption", "info", "warning", "error", "success")


def texts(app: AppTest) -> list[str]:
    """Return what a page says beside the navigation, in the order of the page and each text once."""
    lines: dict[str, None] = {}
    for element in elements_of(app.main):
        for text in _texts(element):
            line = _NUMBER.sub("#", _FOLDERS.sub("…/", " ".join(text.split())))
            if line and not line.startswith("<style"):
                lines[line] = None
    return list(lines)


def misread(app: AppTest) -> list[str]:
    """Return the labels with markup, of which Streamlit has the source read aloud."""
    widgets = (element for element in elements_of(app._tree) if element.type != "page_link")
    labels = (label for element in widgets if isinstance(label := getattr(element, "label", None), str))
    return [label for label in labels if _MARKUP.search(label)]


def _texts(element: Any) -> Iterator[str]:
    kind = element.type
    if kind in _SPOKEN or kind == "metric":
        yield element.label if kind == "metric" else element.value
    elif isinstance(label := getattr(element, "label", None), str):
        yield label
    if isinstance(words := getattr(element, "help", None), str):
        yield words
    if kind == "bidi_component" and element.proto.component_name == "fmviz.stage":
        yield from _stage(decode(element.proto.bytes)[0])


def _stage(header: dict[str, Any]) -> Iterator[str]:
    drawn = header["stage"]
    yield drawn["state"]["word"]
    yield drawn["state"]["sentence"]
    for panel in header["panels"]:
        yield panel["title"]
        yield panel["frames"][-1]["caption"]
    for label, _, words, _ in drawn["numbers"] or ():
        yield label
        yield words
    for chart in drawn["charts"]:
        yield chart["title"]
        yield from (series["name"] for row in chart["rows"] for series in row["series"])


class Sentences:
    """The sentences of all pages, compared or collected.

    Parameters
    ----------
    update : bool
        Whether to collect them instead of comparing them; `write` then writes the files.
    """

    def __init__(self, update: bool) -> None:
        self._update = update
        self._seen: dict[str, dict[str, list[str]]] = {}

    def __call__(self, app: AppTest, page: str, state: str = DEFAULT) -> None:
        """Assert that a page says in a state what its file holds, and no label has markup."""
        assert not misread(app), misread(app)
        spoken = texts(app)
        if self._update:
            self._seen.setdefault(page, {})[state] = spoken
            return
        kept = read(page)
        assert state in kept, f"{page}.txt has no section {state!r}: run pytest with --update-sentences"
        if state != DEFAULT:
            spoken = _beyond(spoken, kept)
        changed = "\n".join(
            difflib.unified_diff(kept[state], spoken, "kept", "on the page", lineterm="", n=0)
        )
        assert not changed, f"{page}, {state} (pytest --update-sentences takes it over):\n{changed}"

    def write(self) -> None:
        """Write what was collected; sections that no test has asked for stay."""
        for page, seen in self._seen.items():
            kept = {**read(page), **seen}
            states = sorted(kept.keys() - {DEFAULT, SEVERAL})
            often = Counter(line for state in states for line in kept[state])
            known = {**dict.fromkeys(kept.get(SEVERAL, ())), **often}
            kept[SEVERAL] = [line for line in known if often[line] >= 3 or line in kept.get(SEVERAL, ())]
            kept[SEVERAL] = _beyond(kept[SEVERAL], {DEFAULT: kept.get(DEFAULT, [])})
            sections = {state: _beyond(kept[state], kept) for state in states}
            first = {state: kept[state] for state in (DEFAULT, SEVERAL) if kept.get(state)}
            FOLDER.mkdir(exist_ok=True)
            _file(page).write_text(
                "\n".join(
                    f"== {state}\n" + "".join(f"{line}\n" for line in lines)
                    for state, lines in {**first, **sections}.items()
                ),
                encoding="utf-8",
            )


def _beyond(lines: list[str], kept: dict[str, list[str]]) -> list[str]:
    """Return the lines that the sections of no state in particular do not have."""
    usual = {*kept.get(DEFAULT, ()), *kept.get(SEVERAL, ())}
    return [line for line in lines if line not in usual]


def read(page: str) -> dict[str, list[str]]:
    """Return the sections of a page's file."""
    sections: dict[str, list[str]] = {}
    if _file(page).exists():
        for line in _file(page).read_text(encoding="utf-8").splitlines():
            if line.startswith("== "):
                lines = sections.setdefault(line[3:], [])
            elif line:
                lines.append(line)
    return sections


def _file(page: str) -> Path:
    return FOLDER / f"{page}.txt"
