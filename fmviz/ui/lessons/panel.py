"""The panel of a lesson beside a page: text, prediction, answer, and the next step."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import streamlit as st

from fmviz.lab.background.task import Task, TaskState
from fmviz.lab.background.tasks import manager
from fmviz.lab.lessons.steps import (
    Lesson,
    Question,
    State,
    Step,
    fill,
    lessons,
    numbers_in,
)
from fmviz.lab.lessons.values import (
    calculate,
    evaluate,
    is_right,
    right_choice,
)
from fmviz.ui import navigation
from fmviz.ui.components import set_cookie
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings
from fmviz.ui.watching import shared_task, watch

_STYLE = """<style>
.st-key-lesson_panel {border-left: 4px solid light-dark(#1f5fa8, #3277ce)}
.st-key-lesson_panel .katex {font-size: 1.08em}
.st-key-lesson_text p, .st-key-lesson_text li, .st-key-lesson_answer p {max-width: 46rem}
.st-key-lesson_panel .katex-display {overflow-x: auto; overflow-y: hidden; padding: 2px 0; margin: 0.4em 0}
@media (max-width: 1100px) {
  [data-testid="stHorizontalBlock"]:has(> div .st-key-lesson_panel) {flex-direction: column}
  [data-testid="stHorizontalBlock"]:has(> div .st-key-lesson_panel) > div {flex: none; width: 100%}
}
@media (min-width: 1101px) {
  [data-testid="stColumn"]:has(.st-key-lesson_panel) > div {
    position: sticky; top: 3.75rem; max-height: calc(100vh - 4.5rem); overflow-y: auto;
  }
}
</style>"""


# A narrow one above the page.
_STRIP = """<style>
.st-key-lesson_panel, .st-key-lesson_panel [data-testid="stVerticalBlock"] {gap: 0.35rem}
.st-key-lesson_panel {padding-block: 0.5rem}
.st-key-lesson_panel p {max-width: none; font-size: 0.9rem}
.st-key-lesson_panel button {min-height: 2rem}
.st-key-lesson_panel [data-testid="stAlertContainer"] {padding-block: 0.3rem}
</style>"""

PROGRESS_COOKIE = "fmviz-lessons"
"""The cookie with the steps reached."""


@dataclass
class LessonProgress:
    """The progress of a reader in a lesson.

    Attributes
    ----------
    reached : int
        The furthest step opened; the number of steps plus one for a finished lesson.
    said : dict
        The reader's predictions by step; the answers of these steps are revealed.
    """

    reached: int = 0
    said: dict[int, str | float] = field(default_factory=dict)


def progress(name: str) -> LessonProgress:
    """Return the progress in a lesson; a new session starts from the browser's cookie."""
    if "fmviz:lessons" not in st.session_state:
        # Another port of this host may have set the cookie.
        steps = (item.partition(":") for item in st.context.cookies.get(PROGRESS_COOKIE, "").split("."))
        st.session_state["fmviz:lessons"] = {
            lesson: LessonProgress(min(int(step), len(lessons()[lesson].steps) + 1))
            for lesson, _, step in steps
            if lesson in lessons() and re.fullmatch("[0-9]{1,3}", step)
        }
    stored: dict[str, LessonProgress] = st.session_state["fmviz:lessons"]
    return stored.setdefault(name, LessonProgress())


def _remember() -> None:
    """Store the furthest step of every lesson in a cookie."""
    steps = st.session_state["fmviz:lessons"].items()
    set_cookie(PROGRESS_COOKIE, ".".join(f"{lesson}:{reader.reached}" for lesson, reader in steps))


def state_of(lesson: Lesson, number: int) -> State:
    """Return the page and state of a step, counted from 1, before or after its answer."""
    step = lesson.steps[min(number, len(lesson.steps)) - 1]
    return step.after if number in progress(lesson.name).said or not step.question else step.before


def script_of(page: str) -> str:
    """Return the script of a page by its short name."""
    return navigation.START.script if page == "start" else f"pages/{page}.py"


def go(lesson: Lesson, number: int, here: str) -> None:
    """Open a step of a lesson on its page and in its state; a button callback."""
    state = state_of(lesson, number)
    query = {**state.query(), "lesson": lesson.name, "step": str(number)}
    Settings.move(query, None if state.page == here else script_of(state.page))


def open_step(settings: Settings) -> None:
    """Open the page and state of a link that contains only a lesson, if the lesson exists."""
    lesson = lessons().get(settings["lesson"])
    if lesson is not None:
        go(lesson, settings["step"], here="")
        Settings.leave()


def begin(lesson: Lesson, number: int, here: str, *, again: bool = False) -> None:
    """Open a step from outside the lesson; `again` discards the predictions."""
    if again:
        st.session_state.get("fmviz:lessons", {}).pop(lesson.name, None)
    go(lesson, number, here)


def end(settings: Settings) -> None:
    """Leave the lesson; the page keeps its state and shows all controls."""
    lesson = lessons().get(settings["lesson"])
    Settings.free(settings.page, *{step.before.page for step in (lesson.steps if lesson else ())})
    settings.reset("lesson", "step")


@contextmanager
def beside(settings: Settings) -> Iterator[None]:
    """Draw the lesson panel, if there is a lesson, beside the page; a narrow one above it."""
    lesson = lessons().get(settings["lesson"])
    if not settings["lesson"] or (lesson and lesson.strip):
        if lesson:
            draw(settings)
        yield
        return
    with st.container(key="lesson_split"):
        left, right = st.columns([2, 3], gap="medium")
        with left:
            draw(settings)
        with right:
            yield


def draw(settings: Settings) -> None:
    """Draw the panel of the lesson in the settings."""
    lesson = lessons().get(settings["lesson"])
    if lesson is None:
        st.warning(
            plain(f"Unknown lesson {settings['lesson']!r}; available: {', '.join(map(repr, lessons()))}."),
            icon=":material/link_off:",
        )
        return
    number = settings["step"]
    st.html(_STYLE + _STRIP * lesson.strip)
    reader = progress(lesson.name)
    reader.reached = max(reader.reached, min(number, len(lesson.steps) + 1))
    _remember()
    with st.container(border=True, key="lesson_panel"):
        if number > len(lesson.steps):
            _finished(settings, lesson)
            return
        step, state = lesson.steps[number - 1], state_of(lesson, number)
        elsewhere = state.page != settings.page
        _head(settings, lesson, number, elsewhere)
        if elsewhere:
            links = (link for group in navigation.NAVIGATION.values() for link in group)
            there = next(link.label for link in links if link.script == script_of(state.page))
            st.markdown(f"This step of the lesson is on the page *{there}*.")
            st.button(
                f"Back to {there}",
                icon=":material/undo:",
                key="lesson_return",
                on_click=go,
                args=(lesson, number, settings.page),
            )
            return
        task = _task(lesson, number)
        _when_ready(task if numbers_in(step.text) else None, partial(_body, settings, lesson, number, step))


def _head(settings: Settings, lesson: Lesson, number: int, elsewhere: bool) -> None:
    total, step, said = len(lesson.steps), lesson.steps[number - 1], progress(lesson.name).said

    def go_on() -> None:
        if number < total:
            go(lesson, number + 1, settings.page)
        else:
            settings.set(step=number + 1)  # The page keeps what it shows, such as the run just made.

    with st.container(
        horizontal=True, vertical_alignment="center", horizontal_alignment="distribute", key="lesson_head"
    ):
        st.markdown(
            f":material/{lesson.icon}: **{plain(lesson.title)}** "
            f":small[:gray[· step {number:,} of {total:,}]]",
            width="content",
        )
        with st.container(horizontal=True, width="content", gap="xsmall", key="lesson_moves"):
            _button(
                settings,
                "Back",
                partial(go, lesson, number - 1, settings.page),
                icon=":material/arrow_back:",
                key="lesson_back",
                shortcut="K",
                disabled=number == 1 or elsewhere,
            )
            _button(
                settings,
                "Next" if number < total else "Finish",
                go_on,
                icon=":material/arrow_forward:",
                key="lesson_next",
                shortcut="J",
                type="secondary" if step.question and number not in said else "primary",
                disabled=elsewhere,
            )
            st.button(
                "End",
                icon=":material/close:",
                key="lesson_end",
                type="tertiary",
                on_click=end,
                args=(settings,),
                help="Leaves the lesson and shows all controls of the page. This browser remembers the step.",
            )
    if not lesson.strip:
        st.progress(number / total)


def _button(
    settings: Settings, label: str, then: Callable[[], None], *, shortcut: str, **keywords: Any
) -> None:
    """Draw a button with a keyboard shortcut, listed among those of the page."""
    settings.shortcuts[shortcut] = label
    st.button(label, shortcut=shortcut, on_click=then, **keywords)


def _body(settings: Settings, lesson: Lesson, number: int, step: Step, values: dict[str, float]) -> None:
    with st.container(key="lesson_text"):
        mark = "" if step.title.endswith("?") else "."
        title = f"**{plain(step.title)}**{mark} " if lesson.strip else f"#### {plain(step.title)}\n\n"
        st.markdown(title + fill(step.text, values))
        if step.formulas:
            with st.expander("In formulas", icon=":material/functions:"):
                st.markdown(fill(step.formulas, values))
    if step.question is not None:
        with st.container(key="lesson_answer"):
            _predict(settings, lesson, number, step.question)
            if number in progress(lesson.name).said:
                _when_ready(_task(lesson, number), partial(_reveal, lesson, number, step))


# ------------------------------------------------------------------------------------- prediction and answer


def _predict(settings: Settings, lesson: Lesson, number: int, question: Question) -> None:
    state = progress(lesson.name)
    key, fixed = f"lesson_{lesson.name}_{number}", number in state.said
    said: Any = state.said.get(number)
    words = [choice.words for choice in question.choices]
    common: dict[str, Any] = {"key": key, "label_visibility": "collapsed", "disabled": fixed}

    def reveal(prediction: str | float) -> None:
        state.said[number] = prediction
        go(lesson, number, settings.page)

    st.markdown(f":material/psychology: **Predict.** {question.text}")
    if words and fixed:
        if not lesson.strip:
            st.radio("Your prediction", words, index=words.index(said), **common)
    elif words:
        # A choice reveals the answer without a second click.
        with st.container(gap="xsmall", horizontal=lesson.strip, key="lesson_choices"):
            for place, choice in enumerate(words):
                st.button(choice, key=f"{key}_{place}", width="stretch", on_click=reveal, args=(choice,))
    else:
        typed = st.number_input(
            "Your prediction", value=said, format="%.6g", placeholder="a number", **common
        )
        ready = typed is not None
        if not fixed:
            _button(
                settings,
                "Reveal",
                lambda: reveal(st.session_state[key]),
                icon=":material/visibility:",
                key="lesson_reveal",
                type="primary",
                shortcut="V",
                disabled=not ready,
                help=None if ready else "Predict first: wrong guesses help you remember the answer.",
            )


def _reveal(lesson: Lesson, number: int, step: Step, values: dict[str, float]) -> None:
    said, question = progress(lesson.name).said.get(number), step.question
    if question is not None and said is not None:
        right = is_right(question, said, values)
        if right and question.choices:
            truth = "You were right."
        elif question.choices:
            truth = f"Incorrect. The answer is: **{right_choice(question, values).words}**"
        else:
            truth = f"Your prediction: {said:,.6g}. Correct: **{evaluate(question.answer, values):,.6g}**."
        if right:
            st.success(truth)
        else:
            st.info(truth, icon=":material/lightbulb:")
    st.markdown(fill(step.reveal, values))


def _task(lesson: Lesson, number: int) -> Task:
    """Return the task that computes a step's numbers, started in advance."""
    step = lesson.steps[number - 1]
    return shared_task(f"lesson:{lesson.name}:{number}", lambda should_stop: calculate(step), again=False)


def _when_ready(task: Task | None, body: partial[None]) -> None:
    """Draw the content that needs computed numbers, or the elapsed time of their computation."""
    if task is None or (view := task.view()).state is TaskState.FINISHED:
        body({} if task is None else dict(view.items))
    elif view.state.ended:
        st.error(f"This answer could not be calculated. {plain(view.message)}", icon=":material/error:")
        st.button(
            "Calculate again",
            icon=":material/refresh:",
            key="lesson_again",
            on_click=partial(manager().forget, task.id),
        )
    else:
        watch(task, lambda view: None, lambda view: (f"Computing the answer: {view.elapsed:.0f} s.", None))


# ------------------------------------------------------------------------------------------------- the end


def _finished(settings: Settings, lesson: Lesson) -> None:
    st.markdown(f"#### :material/celebration: Finished: {plain(lesson.title)}")
    st.markdown("You learned:\n\n" + "\n".join(f"- {item}" for item in lesson.learn))
    following = lessons().get(lesson.next)

    def list_all() -> None:
        end(settings)
        Settings.move({}, navigation.LESSONS.script)

    with st.container(horizontal=True):
        if following is not None:
            _button(
                settings,
                f"Next: {plain(following.title)}",
                partial(go, following, 1, settings.page),
                icon=":material/arrow_forward:",
                key="lesson_following",
                type="primary",
                shortcut="J",
            )
        st.button("All lessons", icon=navigation.LESSONS.icon, key="lesson_all", on_click=list_all)
        _button(
            settings,
            "Back",
            partial(go, lesson, len(lesson.steps), settings.page),
            icon=":material/arrow_back:",
            key="lesson_back",
            type="tertiary",
            shortcut="K",
        )
        st.button(
            "Stay here, with all controls",
            icon=":material/lock_open:",
            key="lesson_end",
            type="tertiary",
            on_click=end,
            args=(settings,),
        )
