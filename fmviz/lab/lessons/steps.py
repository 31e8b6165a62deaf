"""Parse lessons: Markdown files whose steps are shown above the pages they are about.

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
from it, relatively, is still right. What a number is, `find` says: see `fmviz.lab.lessons.values`.
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
    """A page in a state: its name, its settings as a query string spells them, hidden and locked controls."""

    page: str
    settings: Mapping[str, str] = field(default_factory=dict)
    hide: str = ""
    lock: str = ""

    def query(self) -> dict[str, str]:
        """Return the query parameters of a link to it."""
        restrictions = {"hide": self.hide, "lock": self.lock}
        return {**self.settings, **{name: text for name, text in restrictions.items() if text}}


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
        What can be picked; none for a number.
    answer : str
        The expression of the number, or empty.
    within : float
        The largest relative error of a number that counts as right.
    """

    text: str
    choices: tuple[Choice, ...] = ()
    answer: str = ""
    within: float = 0.0


@dataclass(frozen=True)
class Step:
    """One step of a lesson.

    Attributes
    ----------
    title, text : str
        What is read first.
    before, after : State
        The page beneath, until the answer is revealed and from then on.
    formulas : str
        What is folded beneath the text.
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
    """Read a lesson from the text of its file; `name` is what links call it.

    Raises
    ------
    ValueError, TypeError, KeyError
        If it is not written as one, or has a key that there is not.
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
        choices = tuple(Choice(*pair) for pair in asked.pop("choices", ()))
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
    """Return a state with what a table of a lesson changes of it."""
    shown, hidden = show.split(","), (state.hide if hide is None else hide).split(",")
    return State(
        state.page,
        {**state.settings, **to_query(set)},
        ",".join(name for name in hidden if name not in shown),
        state.lock if lock is None else lock,
    )


def fill(text: str, values: Mapping[str, float]) -> str:
    """Return a text with its numbers ``[[name:format]]`` filled in; a minus sign is a real one."""

    def number(match: re.Match[str]) -> str:
        value, form = values[match[1]], match[2] or ""
        integer = float(value).is_integer() and not form.endswith(("f", "%", "e"))
        return typeset(int(value) if integer else value, form)

    return _NUMBER.sub(number, text)


def numbers_in(text: str) -> set[str]:
    """Return the names of the numbers that a text wants."""
    return {match[1] for match in _NUMBER.finditer(text)}


@functools.cache
def lessons() -> dict[str, Lesson]:
    """Return all lessons by their names, in order."""
    parsed = [parse(path.stem, path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.md"))]
    return {lesson.name: lesson for lesson in sorted(parsed, key=lambda lesson: lesson.order)}
