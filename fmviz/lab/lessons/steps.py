"""Lessons: Markdown files with a small header, split into steps that are shown above the real pages.

A lesson is one file in ``fmviz/lessons``. It begins with a header in TOML between lines ``+++``; every
heading ``# …`` begins a step. A step may begin with a TOML block that says which page is shown beneath, in
which state, what is asked and what is true:

.. code-block:: text

    +++
    title = "How TI selects interactions"
    question = "Can a regularizer drop most pairs?"
    order = 3
    minutes = 8
    icon = "grain"
    learn = ["What the penalty TI adds up."]

    [pages.prox]                      # what all steps on that page have in common
    set = {d = 200, k = 30}
    hide = "source,k"                 # a step, and its `after`, may `show` some of these again
    +++

    # At the same strength

    ```toml
    page = "prox"
    set = {regularizers = "l1", log2lambda = 0}
    after = {set = {regularizers = "l1,ti"}}    # the page once the answer is revealed
    claims = ["ti < l1"]                        # sentences of the text, as conditions; tests hold them

    [find]                                      # numbers, calculated, never written down
    l1 = {of = "operator", regularizer = "l1", count = "interactions"}
    ti = {of = "operator", regularizer = "ti", count = "interactions"}

    [predict]
    choices = [["As many", "ti == l1"], ["Fewer", "ti < l1"]]   # the right one is the one that is true
    ```

    Text, with formulas in $…$. It begins with the question.

    ## Formulas
    What is folded.

    ## Predict
    The question.

    ## Reveal
    ℓ₁ uses [[l1:,]] pairs, TI [[ti:,]].

Instead of ``choices`` a prediction may have ``answer = "ti"`` with ``within = 0.1``, a number and how far
from it, relatively, is still right; or neither, for words in the reader's own writing. What a number is,
`find` says: see `fmviz.lab.lessons.values`.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fmviz.engine.errors import one_of
from fmviz.lab.typography import with_minus
from fmviz.lab.values import to_query

FOLDER = Path(__file__).parents[2] / "lessons"
_HEADER = re.compile(r"\A\+\+\+\n(.*?)\n\+\+\+\n", re.DOTALL)
_STEP = re.compile(r"^# (.+)$", re.MULTILINE)
_BLOCK = re.compile(r"\A\s*```toml\n(.*?)\n```\n", re.DOTALL)
_SECTION = re.compile(r"^## (Formulas|Predict|Reveal)\n", re.MULTILINE)
_NUMBER = re.compile(r"\[\[(\w+)(?::([^\]]*))?\]\]")
_HEADER_KEYS = ("title", "question", "order", "minutes", "icon", "learn", "next", "pages", "listed")
_STATE_KEYS = ("set", "hide", "show", "lock")
_STEP_KEYS = ("page", *_STATE_KEYS, "after", "claims", "find", "predict")


@dataclass(frozen=True)
class State:
    """A page in a state: its name, its settings as a query string spells them, hidden and locked controls."""

    page: str
    settings: Mapping[str, str] = field(default_factory=dict)
    hide: str = ""
    lock: str = ""

    def query(self) -> dict[str, str]:
        """Return the query parameters of a link to it."""
        rest = {"hide": self.hide, "lock": self.lock}
        return {**self.settings, **{name: text for name, text in rest.items() if text}}


@dataclass(frozen=True)
class Choice:
    """An answer to pick, and the condition under which it is the right one."""

    words: str
    condition: str


@dataclass(frozen=True)
class Question:
    """What the reader predicts.

    Attributes
    ----------
    text : str
        The question.
    choices : tuple of Choice
        What can be picked; none for a number or for free words.
    answer : str
        The expression of a number, or empty.
    within : float
        The largest relative error of a number that counts as right.
    """

    text: str
    choices: tuple[Choice, ...] = ()
    answer: str = ""
    within: float = 0.0

    @property
    def kind(self) -> str:
        """Return "choice", "number" or "words"."""
        return "choice" if self.choices else "number" if self.answer else "words"


@dataclass(frozen=True)
class Step:
    """One step of a lesson.

    Attributes
    ----------
    title, text : str
        What is read first.
    formulas : str
        What is folded beneath it.
    before, after : State or None
        The page beneath, until the answer is revealed and from then on; None to stay where the reader is.
    question : Question or None
        What is predicted.
    reveal : str
        What is read then.
    find : mapping of str
        How the numbers in the text are calculated: an expression of those before, or the arguments of a
        quantity.
    claims : tuple of str
        Conditions that must be true of them.
    """

    title: str
    text: str
    before: State | None = None
    after: State | None = None
    formulas: str = ""
    question: Question | None = None
    reveal: str = ""
    find: Mapping[str, Any] = field(default_factory=dict)
    claims: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lesson:
    """A lesson: its header and its steps."""

    name: str
    title: str
    question: str
    order: int
    minutes: int
    icon: str
    learn: tuple[str, ...]
    next: str
    listed: bool
    steps: tuple[Step, ...]


def parse(name: str, text: str) -> Lesson:
    """Read a lesson; ValueError with a sentence where it is not written as one.

    Parameters
    ----------
    name : str
        What links call it.
    text : str
        The file.
    """
    found = _HEADER.match(text)
    if found is None:
        raise ValueError(f"Lesson {name!r} does not begin with a header between lines of +++.")
    header = _toml(name, "the header", found[1], _HEADER_KEYS)
    missing = [key for key in ("title", "order", "minutes", "learn") if key not in header]
    if missing:
        raise ValueError(f"The header of lesson {name!r} lacks {missing[0]!r}.")
    places = [*_STEP.finditer(text, found.end())]
    if not places:
        raise ValueError(f"Lesson {name!r} has no step; a step begins with a heading '# …'.")
    ends = [place.start() for place in places[1:]] + [len(text)]
    pages: Mapping[str, Any] = header.get("pages", {})
    return Lesson(
        name,
        header["title"],
        header.get("question", ""),
        header["order"],
        header["minutes"],
        header.get("icon", "school"),
        tuple(header["learn"]),
        header.get("next", ""),
        header.get("listed", True),
        tuple(
            _step(name, place[1].strip(), text[place.end() : end], pages)
            for place, end in zip(places, ends, strict=True)
        ),
    )


def _step(lesson: str, title: str, text: str, pages: Mapping[str, Any]) -> Step:
    where = f"step {title!r}"
    block = _BLOCK.match(text)
    said = _toml(lesson, where, block[1], _STEP_KEYS) if block else {}
    body, *sections = _SECTION.split(text[block.end() :] if block else text)
    parts = {kind: words.strip() for kind, words in zip(sections[::2], sections[1::2], strict=True)}
    question = None
    if "Predict" in parts:
        asked = said.get("predict", {})
        question = Question(
            parts["Predict"],
            tuple(Choice(*pair) for pair in asked.get("choices", ())),
            asked.get("answer", ""),
            asked.get("within", 0.0),
        )
        if "Reveal" not in parts:
            raise ValueError(f"In lesson {lesson!r}, {where} asks and never reveals; add '## Reveal'.")
    elif "predict" in said:
        raise ValueError(f"In lesson {lesson!r}, {where} has answers and no question; add '## Predict'.")
    before = _state(said["page"], said, pages.get(said["page"], {})) if "page" in said else None
    after = before
    if before is not None and "after" in said:
        for key in said["after"]:
            one_of(f"A key of 'after' of {where} in lesson {lesson!r}", key, _STATE_KEYS)
        common = {"set": before.settings, "hide": before.hide, "lock": before.lock}
        after = _state(before.page, said["after"], common)
    find, claims = said.get("find", {}), tuple(said.get("claims", ()))
    return Step(
        title,
        body.strip(),
        before,
        after,
        parts.get("Formulas", ""),
        question,
        parts.get("Reveal", ""),
        find,
        claims,
    )


def _state(page: str, said: Mapping[str, Any], common: Mapping[str, Any]) -> State:
    settings = {**common.get("set", {}), **said.get("set", {})}
    shown = said.get("show", "").split(",")
    hide = said.get("hide", common.get("hide", "")).split(",")
    return State(
        page,
        to_query(settings),
        ",".join(name for name in hide if name not in shown),
        said.get("lock", common.get("lock", "")),
    )


def _toml(lesson: str, where: str, text: str, keys: tuple[str, ...]) -> dict[str, Any]:
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"In lesson {lesson!r}, {where} is not TOML: {error}.") from None
    for key in found:
        one_of(f"A key of {where} in lesson {lesson!r}", key, keys)
    return found


def fill(text: str, values: Mapping[str, float]) -> str:
    """Return a text with its numbers ``[[name:format]]`` filled in; a minus sign is a real one."""

    def number(found: re.Match[str]) -> str:
        value, form = values[found[1]], found[2] or ""
        whole = float(value).is_integer() and not form.endswith(("f", "%", "e"))
        return with_minus(f"{int(value) if whole else value:{form}}")

    return _NUMBER.sub(number, text)


def numbers_in(text: str) -> set[str]:
    """Return the names of the numbers that a text wants."""
    return {found[1] for found in _NUMBER.finditer(text)}


@functools.cache
def lessons() -> dict[str, Lesson]:
    """Return all lessons by their names, in order."""
    found = [parse(path.stem, path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.md"))]
    return {lesson.name: lesson for lesson in sorted(found, key=lambda lesson: lesson.order)}
