"""Parser of lessons: Markdown files with steps shown beside other pages.

A lesson is a file in ``fmviz/lessons``. It starts with a TOML header between lines ``+++``; every heading ``#
…`` starts a step. A step can start with a TOML block with its page, the state of the page, the question, and
claims:

.. code-block:: text

    +++
    title = "How TI selects interactions"
    question = "Can a regularizer drop most pairs?"
    order = 3
    minutes = 8
    icon = "grain"
    learn = ["The definition of TI."]

    [pages.prox]                      # common to all steps on this page
    set = {d = 200, k = 30}
    hide = "source,k"                 # a step, and its `after`, may `show` some of these again
    +++

    # At the same strength

    ```toml
    page = "prox"
    set = {regularizers = "l1", log2lambda = 0}
    after = {set = {regularizers = "l1,ti"}}    # changes when the answer is revealed
    claims = ["ti < l1"]                        # statements of the text as conditions, checked by tests

    [find]                                      # numbers, always computed
    l1 = {of = "operator", regularizer = "l1", count = "interactions"}
    ti = {of = "operator", regularizer = "ti", count = "interactions"}

    [predict]
    choices = [["As many", "ti == l1"], ["Fewer", "ti < l1"]]   # the answer is the choice that is true
    ```

    Text with formulas in $…$, starting with the question.

    ## Formulas
    Folded text.

    ## Predict
    The question.

    ## Reveal
    ℓ₁ uses [[l1:,]] pairs, TI [[ti:,]].

Instead of ``choices`` a prediction can have ``answer = "ti"`` with ``within = 0.1``, a number and its
relative tolerance. `find` defines the numbers, see `fmviz.lab.lessons.values`.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fmviz.lab.values import to_query
from fmviz.typography import typeset

FOLDER = Path(__file__).parents[2] / "lessons"
_STEP = re.compile(r"^# (.+)$", re.MULTILINE)
_BLOCK = re.compile(r"\A\s*```toml\n(.*?)\n```\n", re.DOTALL)
_SECTION = re.compile(r"^## (Formulas|Predict|Reveal)\n", re.MULTILINE)
_NUMBER = re.compile(r"\[\[(\w+)(?::([^\]]*))?\]\]")


@dataclass(frozen=True)
class State:
    """A page with its query-string settings, hidden controls and locked controls."""

    page: str
    settings: Mapping[str, str] = field(default_factory=dict)
    hide: str = ""
    lock: str = ""

    def query(self) -> dict[str, str]:
        """Return the query parameters of a link to the state."""
        restrictions = {"hide": self.hide, "lock": self.lock}
        return {**self.settings, **{name: text for name, text in restrictions.items() if text}}


@dataclass(frozen=True)
class Answer:
    """A possible answer, and the condition under which it is correct."""

    words: str
    condition: str


@dataclass(frozen=True)
class Question:
    """A prediction by the reader.

    Attributes
    ----------
    text : str
        The question.
    choices : tuple of Answer
        The possible answers; none for a number.
    answer : str
        The expression of the number, or empty.
    within : float
        The relative tolerance of a number.
    """

    text: str
    choices: tuple[Answer, ...] = ()
    answer: str = ""
    within: float = 0.0


@dataclass(frozen=True)
class Step:
    """One step of a lesson.

    Attributes
    ----------
    title, text : str
        Title and text.
    before, after : State
        The page before and after the answer is revealed.
    formulas : str
        Text folded below.
    question : Question or None
        The prediction.
    reveal : str
        The answer text.
    find : mapping of str
        Definitions of the numbers in the text: expressions of earlier numbers, or arguments of a quantity.
    claims : tuple of str
        Conditions on the numbers that must be true.
    """

    title: str
    text: str
    before: State
    after: State
    formulas: str = ""
    question: Question | None = None
    reveal: str = ""
    find: Mapping[str, Any] = field(default_factory=dict)
    claims: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lesson:
    """A lesson: its header and its steps."""

    name: str
    steps: tuple[Step, ...]
    title: str
    order: int
    minutes: int
    learn: Sequence[str]
    question: str = ""
    icon: str = "school"
    next: str = ""
    listed: bool = True
    strip: bool = False  # above the page rather than beside it


def parse(name: str, text: str) -> Lesson:
    """Parse a lesson; `name` is its name in links.

    Raises
    ------
    ValueError, TypeError, KeyError
        If the text is not a lesson, or has an unknown key.
    """
    _, head, body = text.split("+++\n", 2)
    header = tomllib.loads(head)
    pages = header.pop("pages", {})
    _, *parts = _STEP.split(body)
    steps = tuple(_step(title, text, pages) for title, text in zip(parts[::2], parts[1::2], strict=True))
    return Lesson(name, steps, **header)


def _step(title: str, text: str, pages: Mapping[str, Any]) -> Step:
    block = _BLOCK.match(text)
    said = tomllib.loads(block[1]) if block else {}
    body, *sections = _SECTION.split(text[block.end() :] if block else text)
    parts = {kind: words.strip() for kind, words in zip(sections[::2], sections[1::2], strict=True)}
    find, claims, asked = said.pop("find", {}), tuple(said.pop("claims", ())), said.pop("predict", {})
    question: Question | None = None
    if asked or "Predict" in parts:
        choices = tuple(Answer(*pair) for pair in asked.pop("choices", ()))
        question = Question(parts["Predict"], choices, **asked)
    page, then = said.pop("page"), said.pop("after", {})
    before = _state(_state(State(page), **pages.get(page, {})), **said)
    formulas, reveal = parts.get("Formulas", ""), parts.get("Reveal", "")
    return Step(
        title.strip(), body.strip(), before, _state(before, **then), formulas, question, reveal, find, claims
    )


def _state(
    state: State,
    set: Mapping[str, Any] = {},
    hide: str | None = None,
    show: str = "",
    lock: str | None = None,
) -> State:
    """Return a state with the changes in a table of a lesson."""
    shown, hidden = show.split(","), (state.hide if hide is None else hide).split(",")
    return State(
        state.page,
        {**state.settings, **to_query(set)},
        ",".join(name for name in hidden if name not in shown),
        state.lock if lock is None else lock,
    )


def fill(text: str, values: Mapping[str, float]) -> str:
    """Return a text with its numbers ``[[name:format]]`` filled in, with true minus signs."""

    def number(match: re.Match[str]) -> str:
        value, form = values[match[1]], match[2] or ""
        integer = float(value).is_integer() and not form.endswith(("f", "%", "e"))
        return typeset(int(value) if integer else value, form)

    return _NUMBER.sub(number, text)


def numbers_in(text: str) -> set[str]:
    """Return the names of the numbers in a text."""
    return {match[1] for match in _NUMBER.finditer(text)}


@functools.cache
def lessons() -> dict[str, Lesson]:
    """Return all lessons by name, in order."""
    parsed = [parse(path.stem, path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.md"))]
    return {lesson.name: lesson for lesson in sorted(parsed, key=lambda lesson: lesson.order)}
