"""The page Papers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from ui import driving
from ui.driving import words

from fmviz.lab.papers import Result, shipped_result, summaries

NAME = "atarashi2021_fig2"


def page(**query: str) -> AppTest:
    return driving.page("paper", **query)


def chart(app: AppTest) -> dict:
    return json.loads(app.get("plotly_chart")[0].proto.spec)


@pytest.mark.faultless
def test_every_artefact_has_a_card(store):
    app = page()
    said, hints = words(app), "\n".join(part.help or "" for part in app.markdown)
    for summary in summaries().values():
        assert summary.title in said
        assert summary.statement.text in hints
    assert said.count(" budget") == len(summaries())
    assert "full budget; without RCV1, FD." in said


@pytest.mark.parametrize("name", summaries())
@pytest.mark.sample(4)
@pytest.mark.faultless
def test_a_shipped_result_is_shown(store, name):
    app, result = page(artefact=name), shipped_result(name)
    assert app.code[0].value == f"python -m papers {name} --budget {result.budget}"
    assert f"Computed on {words(app).partition('Computed on ')[2][:10]} with fmviz" in words(app)
    assert chart(app)["data"] == result.picture["data"]
    verdicts = Counter(check.verdict for check in result.checks)
    assert {verdict: words(app).count(f" {verdict}] **") for verdict in verdicts} == verdicts


def test_statements_and_deviations_are_shown(store):
    app = page(artefact=NAME)
    said = words(app)
    assert ":red[:material/cancel: does not hold] **TI by columns (Eq. 30).** Used features: 200" in said
    assert ":green[:material/check_circle: holds] **TI by rows.** Used features: 200" in said
    assert list(app.dataframe[0].value["Published"]) == [200.0] * 4
    assert [expander.label for expander in app.expander][-2:] == [
        "Differences from the paper (4)",
        "The numbers",
    ]


def test_an_artefact_says_how_it_is_repeated(store, sentences):
    sentences(page(artefact=NAME), "paper", "an artefact")


def test_a_link_with_a_budget_opens(store):
    app = page(artefact=NAME, budget="full")
    assert "The link sets 'budget', which does not exist on this page; it was ignored." in words(app)
    assert chart(app)["data"]


def test_a_broken_store_does_not_matter(tmp_path, monkeypatch):
    path = tmp_path / "broken.sqlite"
    path.write_text("no database " * 500)
    monkeypatch.setenv("FMVIZ_STORE", str(path))
    app = page(artefact=NAME)
    assert not app.error
    assert chart(app)["data"]


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 700)])
def test_an_artefact_in_the_browser(new_page, server, wait_idle, shoot, scheme, width):
    page = new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    page.goto(f"{server.url}/paper")
    wait_idle(page)
    assert page.get_by_role("link", name="Open", include_hidden=True).count() == len(summaries())
    shoot(page, f"papers-{scheme}-{width}")
    page.get_by_role("link", name="Open").first.click()
    page.wait_for_url("**/paper?*artefact=atarashi2021_fig1*")
    page.locator(".st-key-paper_json button").first.wait_for()
    wait_idle(page)
    page.locator(".st-key-paper_picture .js-plotly-plot").first.wait_for()
    assert page.locator(".st-key-paper_picture .js-plotly-plot").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    shoot(page, f"paper-{scheme}-{width}")
    with page.expect_download() as download:
        page.locator(".st-key-paper_json button").first.click()
    result = Result.from_dict(json.loads(Path(download.value.path()).read_text(encoding="utf-8")))
    assert result == shipped_result("atarashi2021_fig1")
