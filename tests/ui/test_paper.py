"""The page Papers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fmviz.lab.papers.results import keep_result, kept_results, last_kept
from inline_executor import InlineExecutor
from streamlit.testing.v1 import AppTest
from ui import driving
from ui.driving import finish, press, words

from fmviz.__main__ import main
from fmviz.figures import papers as figures
from fmviz.lab.background import tasks
from fmviz.lab.background.tasks import TaskManager
from fmviz.lab.papers import ARTEFACTS, BUDGETS, Result, base, results
from fmviz.lab.store import RunStore
from fmviz.lab.store import store as process_store

NAME = "atarashi2021_fig2"


@pytest.fixture
def store(tmp_path, monkeypatch) -> RunStore:
    monkeypatch.setenv("FMVIZ_STORE", str(tmp_path / "runs.sqlite"))
    return process_store()


@pytest.fixture
def executor(store) -> Iterator[InlineExecutor]:
    result = InlineExecutor()
    before = tasks.install(TaskManager(result, open_store=lambda: store))
    yield result
    tasks.install(before)


@pytest.fixture(scope="module")
def result() -> Result:
    *_, last = ARTEFACTS[NAME].run("quick")
    return last


def page(**query: str) -> AppTest:
    return driving.page("paper", **query)


def chart(app: AppTest) -> dict:
    return json.loads(app.get("plotly_chart")[0].proto.spec)


def drawn(result: Result) -> dict:
    return json.loads(figures.draw(result.tables, **ARTEFACTS[result.artefact].picture).to_json())


def test_every_artefact_has_a_card(executor):
    app = page()
    assert not app.error
    said, hints = words(app), "\n".join(part.help or "" for part in app.markdown)
    for artefact in ARTEFACTS.values():
        assert artefact.title in said
        assert artefact.statements[0].text in hints
    assert said.count("Not run here yet.") == len(ARTEFACTS)


@pytest.mark.shipped_results
def test_ours_stands_where_nothing_was_run(executor, store):
    app = page()
    said = words(app)
    heads = results.shipped_results()
    assert said.count("Shipped result: 20") == len(heads)
    assert said.count("Not run here yet.") == len(ARTEFACTS) - len(heads)
    (budget,) = (head.budget for head in heads.values() if head.artefact == NAME)
    other = next(item for item in BUDGETS if item != budget)
    for asked in BUDGETS:
        app = page(artefact=NAME, budget=asked)
        assert f"computed by `python -m fmviz paper {NAME} --budget {budget}` with fmviz" in words(app)
        assert app.button(key="paper_run").label == "Run again"
        assert chart(app)["data"]
    keep_result(store, last_kept(ARTEFACTS[NAME], budget).to_dict() | {"budget": other})
    assert words(page()).count("Last run: 20") == 1, "what was run here stands before it"


def test_what_will_be_checked_is_said_before_the_first_run(executor, sentences):
    app = page(artefact=NAME)
    sentences(app, "paper", "an artefact that was not run")
    assert app.button(key="paper_stop").disabled
    assert f"fmviz paper {NAME} --budget quick" in app.code[0].value


@pytest.mark.slow
def test_the_page_and_the_command_give_the_same_picture(executor, tmp_path, capsys):
    assert main(["paper", "fig2", "--budget", "quick", "--output", str(tmp_path)]) == 0
    payload = json.loads((tmp_path / f"{NAME}.json").read_text(encoding="utf-8"))
    printed = Result.from_dict(payload)
    app = page(artefact=NAME)
    assert "Last result: 20" in words(app), "the page shows what the command made"
    assert chart(app)["data"] == drawn(printed)["data"]
    finish(app, "paper_run")
    assert not app.error
    assert chart(app)["data"] == drawn(printed)["data"]
    (kept,) = [last_kept(ARTEFACTS[NAME], "quick", process_store())]
    assert kept is not None
    assert kept.to_dict()["tables"] == payload["tables"]
    html = (tmp_path / f"{NAME}.html").read_text(encoding="utf-8")
    assert figures.standalone(ARTEFACTS[NAME].title, kept.tables, **ARTEFACTS[NAME].picture) == html
    assert f"# {ARTEFACTS[NAME].title}" in capsys.readouterr().out


def test_statements_deviations_and_the_program_are_shown(executor):
    app = press(page(artefact=NAME), "paper_run")
    said = words(app)
    assert ":red[:material/cancel: does not hold] **TI by columns (Eq. 30).** Used features: 200" in said
    assert ":green[:material/check_circle: holds] **TI by rows.** Used features: 200" in said
    assert list(app.dataframe[0].value["Deviation"]) == [0.0, -0.85, 0.0, 0.0]
    assert any("# data P, seed 0 " in block.value for block in app.code)
    assert [expander.label for expander in app.expander][-3:] == [
        "Differences from the paper (4)",
        "The numbers",
        "Copy as Python",
    ]


def test_it_grows_and_is_stopped(executor, store, result, monkeypatch):
    monkeypatch.setattr(base, "PAUSE", 0.0)
    keep_result(store, result.to_dict())
    executor.hold = True
    app = press(page(artefact=NAME), "paper_run")
    assert app.button(key="paper_run").disabled
    assert not app.get("plotly_chart")
    executor.run(2)
    app.run()
    few = len(chart(app)["data"])
    executor.run(2)
    app.run()
    assert len(chart(app)["data"]) > few
    press(app, "paper_stop")
    executor.run()
    app.run()
    assert "Stopped after 3 of 25 parts." in words(app)
    assert kept_results(store)[NAME, "quick"].seconds == result.seconds, "what was stopped is not kept"
    press(app, "paper_back")
    assert "Last result: 20" in words(app)


CREATED: list[int] = []


def piece(own, number):
    CREATED.append(number)
    place = {"method": "L1", "seed": number, "log2_lambda": 0}
    yield "counts", {**place, "features": 2, "share": 0.1, "interactions": 1}


def in_pieces(repro):
    yield from repro.fill(piece, [{"number": number} for number in range(3)], alone=True)


def test_it_goes_on_from_where_it_was_stopped(executor, store, monkeypatch):
    CREATED.clear()
    monkeypatch.setattr(base, "PAUSE", 0.0)
    monkeypatch.setitem(ARTEFACTS, NAME, replace(ARTEFACTS[NAME], runner=in_pieces))
    executor.hold = True
    app = page(artefact=NAME)
    assert app.button(key="paper_run").label == "Run"
    press(app, "paper_run")
    executor.run(2)
    app.run()
    press(app, "paper_stop")
    executor.run()
    app.run()
    assert CREATED == [0, 1]
    # Another session of another server.
    tasks.install(TaskManager(InlineExecutor(), open_store=lambda: store))
    app = page(artefact=NAME)
    assert app.button(key="paper_run").label == "Go on"
    assert "2 finished parts" in app.button(key="paper_run").help
    assert "Incomplete: 2 parts are finished." in words(app)
    finish(app, "paper_run")
    assert CREATED == [0, 1, 2]
    assert len(last_kept(ARTEFACTS[NAME], "quick", store).tables["counts"]) == 3
    assert app.button(key="paper_run").label == "Run again"
    tasks.install(TaskManager(InlineExecutor(), open_store=lambda: store))
    assert "Last result: 20" in words(page(artefact=NAME))
    assert "Last run: 20" in words(page())


def test_what_fails_is_said_in_a_sentence(executor, monkeypatch):
    def runner(repro):
        repro.total = 2
        repro.add(*piece({}, 0))
        yield "first"
        raise ValueError("The second is too large. Take a smaller one.")

    monkeypatch.setitem(ARTEFACTS, NAME, replace(ARTEFACTS[NAME], runner=runner))
    app = page(artefact=NAME)
    finish(app, "paper_run")
    assert app.error[0].value == "The second is too large. Take a smaller one."
    assert not app.button(key="paper_run").disabled


def test_a_result_of_another_protocol_is_not_shown(executor, store, result, sentences):
    keep_result(store, replace(result, settings={**result.settings, "d": 100}).to_dict())
    sentences(page(artefact=NAME), "paper", "another protocol")
    assert last_kept(ARTEFACTS["atarashi2021_fig1"], "quick", store) is None


def test_a_broken_store_leaves_the_desk_in_use(tmp_path, monkeypatch, sentences):
    path = tmp_path / "broken.sqlite"
    path.write_text("no database " * 500)
    monkeypatch.setenv("FMVIZ_STORE", str(path))
    sentences(page(), "paper", "a broken store")


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 700)])
def test_an_artefact_in_the_browser(new_page, server, wait_idle, shoot, scheme, width):
    page = new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    page.goto(f"{server.url}/paper")
    wait_idle(page)
    assert page.get_by_role("link", name="Open", include_hidden=True).count() == len(ARTEFACTS)
    page.get_by_role("link", name="Open").first.click()
    page.wait_for_url("**/paper?*artefact=atarashi2021_fig1*")
    page.locator(".st-key-paper_run button").click()
    page.locator(".st-key-paper_json button").first.wait_for()
    wait_idle(page)
    page.locator(".st-key-paper_picture .js-plotly-plot").first.wait_for()
    assert page.locator(".st-key-paper_picture .js-plotly-plot").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    shoot(page, f"paper-{scheme}-{width}")
    with page.expect_download() as download:
        page.locator(".st-key-paper_json button").first.click()
    result = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert result["artefact"] == "atarashi2021_fig1"
