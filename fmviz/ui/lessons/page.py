"""The page Lessons: topic, duration and progress of each lesson."""

from __future__ import annotations

import streamlit as st

from fmviz.lab.lessons.steps import Lesson, lessons
from fmviz.ui import shell
from fmviz.ui.escape import plain
from fmviz.ui.lessons import panel
from fmviz.ui.settings.state import Settings


def render() -> None:
    """Draw the page."""
    with shell.page("Lessons", Settings("lessons", unread=("dataset", "seed"))) as settings:
        shell.heading(
            settings,
            "Lessons",
            "Five to ten minutes each, on the pages themselves: predict a result, then watch fmviz compute "
            "it.",
        )
        listed = [lesson for lesson in lessons().values() if lesson.listed]
        going = (item for item in listed if panel.progress(item.name).reached <= len(item.steps))
        next_up = next(going, None)
        with st.container(key="cards_lessons"):
            for number, lesson in enumerate(listed, start=1):
                with st.container(
                    border=True,
                    height="stretch",
                    vertical_alignment="distribute",
                    key=f"lessons_{lesson.name}",
                ):
                    _card(number, lesson, settings, first=lesson is next_up)
        st.caption(
            ":material/school: For a class: *Teach*, at the foot of every sidebar, creates a link with "
            "hidden or locked controls. A link with `?lesson=ti` opens that lesson."
        )


def _card(number: int, lesson: Lesson, settings: Settings, *, first: bool) -> None:
    reached, total = panel.progress(lesson.name).reached, len(lesson.steps)
    tick = " :green[:material/check_circle:]" if reached > total else ""
    st.markdown(f"#### {number:,} · {plain(lesson.title)}{tick}\n\n{lesson.question}")
    if reached > total:
        words, verb, step = "Finished", "Again", 1
    elif reached:
        words, verb, step = f"Step {reached:,} of {total:,}", "Go on", reached
    else:
        words, verb, step = f"{total:,} steps", "Begin", 1
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.button(
            verb,
            icon=":material/play_arrow:",
            key=f"lessons_begin_{lesson.name}",
            type="primary" if first else "secondary",
            on_click=panel.begin,
            args=(lesson, step, settings.page),
            kwargs={"again": reached > total},
        )
        icon = ":material/task_alt: " if reached > total else ":material/schedule: "
        st.caption(f"{icon}{words} · {lesson.minutes:,} min", width="content")
