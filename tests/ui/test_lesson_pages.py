"""Lessons above the real pages: every state of a step is one that its page has, and the way through works."""

from __future__ import annotations

import json
import re

import pytest
import streamlit as st
from ui.driving import address, choose, click, page, press, words

from fmviz.lab.experiment import Experiment
from fmviz.lab.lessons.steps import lessons
from fmviz.ui import compare, geometry, path, prox, sweeps
from fmviz.ui.lessons import panel
from fmviz.ui.settings.presets import presets
from fmviz.ui.settings.state import Settings, from_link
from fmviz.ui.train import page as train
from fmviz.ui.train.settings import OWN


def states():
    """Every different page and what is set, hidden and locked on it."""
    steps = [step for lesson in lessons().values() for step in lesson.steps]
    every = [state for step in steps for state in (step.before, step.after) if state is not None]
    return {(state.page, *sorted(state.query().items())): state for state in every}.values()


@pytest.mark.parametrize("name", ["prox", "start", "train", "compare"])
def test_every_state_of_every_step_is_one_of_its_page(name, store, monkeypatch):
    # A visit of each page and model with the names that all its steps use; values one by one without a visit.
    every = [state for state in states() if state.page == name]
    assert every
    for model in dict.fromkeys(state.settings.get("model") for state in every):
        mine = [state for state in every if state.settings.get("model") == model]
        query = {key: text for state in mine for key, text in state.settings.items() if key != "play"}
        for kind in ("hide", "lock"):
            if parts := {part for state in mine for part in getattr(state, kind).split(",") if part}:
                query[kind] = ",".join(sorted(parts))
        app = page(name, **query)
        assert not app.warning, [warning.value for warning in app.warning]
    for state in every if name == "train" else ():
        can_be_run(state.settings)


def can_be_run(query: dict[str, str]) -> None:
    assert Experiment.from_query(query).why_not() is None


def test_a_lesson_is_walked_from_prediction_to_answer(store):
    app = press(page("lessons"), "lessons_begin_prox")
    assert "A gradient step, then shrinkage" in words(app)
    assert address(app)["lesson"] == "prox"
    app.switch_page("pages/prox.py").run()  # AppTest forgets where the program went.
    press(app, "lesson_next")
    assert address(app)["step"] == "2"
    assert app.select_slider(key="prox_log2lambda").disabled
    assert app.button(key="lesson_reveal").disabled
    assert "soft thresholding" not in words(app)
    choose(app, lesson_prox_2=2.5)
    press(app, "lesson_reveal")
    assert "Your prediction: 2.5. Correct: **2.5**." in [item.value for item in app.success]
    assert "soft thresholding" in words(app)
    slider = app.select_slider(key="prox_log2lambda")
    assert not slider.disabled
    assert slider.value == -1, "where it stood when the question was asked"
    # Back and forth at once: the state of the step comes back each time.
    press(app, "lesson_back")
    assert app.select_slider(key="prox_log2lambda").value == -3
    press(app, "lesson_next")
    assert app.select_slider(key="prox_log2lambda").value == -1
    # Elsewhere the panel shows the way back; ending the lesson frees all controls.
    app.query_params.clear()
    app.switch_page("pages/train.py").run()
    assert "This step of the lesson is on the page *Operators*" in words(app)
    press(app, "lesson_return")
    assert "soft thresholding" in words(app)
    app.switch_page("pages/prox.py").run()
    press(app, "lesson_end")
    assert not {"hide", "lock", "lesson", "step"} & set(address(app))
    assert "soft thresholding" not in words(app)
    app.switch_page("pages/lessons.py").run()
    assert "Step 2 of 6" in words(app)


def test_a_wrong_choice_is_told_the_truth_and_a_run_is_started(store):
    app = page("prox", lesson="lambda", step="2")  # Nothing else in the link: the step's own page and state.
    app.switch_page("pages/train.py").run()
    assert app.button(key="lesson_next")
    assert "A hundred times the price" in words(app)
    assert not store.runs()
    click(app, "Both errors fall")
    (message,) = [item.value for item in app.info if "Incorrect" in item.value]
    assert "The training error rises, the validation error falls" in message
    (run,) = store.runs()
    assert f"{run.last['used_interactions']:,} interactions" in words(app)


@pytest.mark.slow
def test_finishing_keeps_the_run_that_is_shown(store):
    app = click(page("train", lesson="cs", step="5"), "None")
    run = address(app)["run"]
    press(app, "lesson_next")
    assert "Finished: How CS selects features" in words(app)
    assert address(app)["run"] == run


def test_the_end_says_what_was_learnt_and_leads_on(store):
    app = page("prox", lesson="prox", step="7")
    assert "Finished: What a proximal operator does" in words(app)
    assert "Soft thresholding" in words(app)
    press(app, "lesson_following")
    assert address(app)["lesson"] == lessons()["prox"].next
    assert "Where must zeros be?" in words(app)


def test_a_new_session_begins_with_what_the_browser_remembers(store, monkeypatch):
    app = page("prox", lesson="prox", step="7")
    (script,) = (item.proto.body for item in app.get("html") if panel.PROGRESS_COOKIE in item.proto.body)
    cookie = re.search(f"{panel.PROGRESS_COOKIE}=([^;]+);", script)[1]
    kept = {panel.PROGRESS_COOKIE: f"{cookie}.ti:2.cs:x"}
    monkeypatch.setattr(type(st.context), "cookies", property(lambda context: kept))
    said = words(page("lessons"))
    assert "Finished · 6 min" in said
    assert "Step 2 of 6" in said


@pytest.mark.parametrize(
    "cookie",
    [
        *("x'-alert(document)-'y:1", 'x"-alert(document)-"y:1', "</script><script>alert(1)</script>:1"),
        *(
            "heatmap:٣",
            "heatmap:²",
            pytest.param(f"heatmap:{'9' * 5_000}", id="many digits"),
            "heatmap:-1",
            "heatmap:1:2",
            "heatmap",
            ":",
        ),
        *("heatmap:1; domain=x", "\u2028alert(document)//:1"),
    ],
)
def test_a_cookie_of_others_is_neither_believed_nor_repeated(cookie, monkeypatch):
    given = {panel.PROGRESS_COOKIE: f"prox:999.{cookie}.ti:2"}
    written = []
    monkeypatch.setattr(type(st.context), "cookies", property(lambda context: given))
    monkeypatch.setattr(st, "session_state", {})
    monkeypatch.setattr(st, "html", lambda text, **_: written.append(text))
    assert panel.progress("ti").reached == 2
    assert panel.progress("prox").reached == len(lessons()["prox"].steps) + 1
    panel._remember()
    (literal,) = (re.fullmatch("<script>document.cookie=(.*)</script>", text)[1] for text in written)
    assert re.match(r"fmviz-lessons=prox:7\.ti:2; path=", json.loads(literal))


def test_an_answer_that_cannot_be_calculated_is_a_sentence(store, monkeypatch):
    monkeypatch.setattr(panel, "calculate", lambda step: map(float, ["no number"]))
    app = choose(page("prox", lesson="prox", step="2"), lesson_prox_2=1.0)
    press(app, "lesson_reveal")
    assert "could not be calculated. could not convert string to float: 'no number'" in app.error[0].value


def test_the_tour_leads_from_page_to_page(store):
    app = press(page("start"), "start_tour")
    for step in lessons()["tour"].steps:
        assert step.title in words(app)
        assert not app.warning
        press(app, "lesson_next")
    assert "Finished: fmviz in sixty seconds" in words(app)


TABLES = {
    "prox": prox.TABLE,
    "geometry": geometry.TABLE,
    "train": (*OWN, *train._VIEW),
    "path": path.TABLE,
    "sweeps": sweeps.TABLE,
    "compare": compare.TABLE,
}


@pytest.mark.parametrize("entry", presets(), ids=lambda value: value.title)
def test_presets_are_states_of_their_page(entry):
    page_of_it = entry.target.script[6:-3]
    table = Settings(page_of_it, TABLES[page_of_it]).table
    for name, text in entry.query.items():
        item = table[name]
        assert item.check(from_link(item, text)) is not None
    if entry.target.script == "pages/train.py":
        can_be_run(entry.query)
