"""The page λ-path."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from inline_executor import InlineExecutor
from playwright.sync_api import expect
from programs import printed
from ui.driving import address, choose, finish, numbers, words
from ui.driving import page as open_page

from fmviz.lab.background import tasks
from fmviz.lab.background.tasks import TaskManager
from fmviz.lab.search.equal_sparsity import matched

pytestmark = pytest.mark.faultless

SMALL = {
    "dataset": "balance_scale",
    "penalties": "ti,cs",
    "low": "0.001",
    "high": "0.1",
    "points": "3",
    "rank": "3",
    "lambda_p": "0.001",
}
# A link leaves out what is the default.
ADDRESS = {name: value for name, value in SMALL.items() if name != "low"}


def code(app, beginning: str) -> str:
    return next(block.value for block in app.code if beginning in block.value)


def test_nothing_yet_is_a_sentence(store, sentences):
    app = open_page("path", **SMALL)
    sentences(app, "path", "small data")
    assert app.button(key="path_start").label == "Run 6 fits"
    assert address(app) == ADDRESS
    assert "500" in numbers(app)


def test_a_path_is_run_chosen_from_and_repeated(store, sentences):
    app = open_page("path", **SMALL)
    finish(app, "path_start")
    assert "6 of 6 fits" in words(app)
    assert address(app)["run"] == "1"
    table = app.dataframe[0].value
    assert list(table["label"]) == ["TI"] * 3 + ["CS"] * 3
    lines = [line.split() for line in printed(code(app, "PathPlan("))[1:]]
    assert [(float(x[1]), int(x[2]), int(x[3])) for x in lines] == [
        (row.lambda_sparse, row.used_interactions, row.used_features) for row in table.itertuples()
    ]
    choose(app, path_at=0.01, path_who="cs")
    assert (address(app)["who"], address(app)["at"]) == ("cs", "0.01")
    row = table[(table["label"] == "CS") & (table["lambda_sparse"] == 0.01)].iloc[0]
    shown = f"{row['used_interactions']:,} interactions of {row['used_features']:,} features, objective "
    assert f"CS at λ = 0.01: {shown}{row['objective']:.5g}" in words(app)
    sentences(app, "path", "a chosen strength")


def test_weights_are_drawn_along_the_path_and_frequencies_once_asked_for(store, sentences):
    app = open_page("path", **SMALL, run="1", at="0.01")
    app.run()
    assert len(app.get("plotly_chart")) == 2
    finish(app, "path_select")
    assert len(app.get("plotly_chart")) == 4
    assert "of 10 paths on halves of the training rows select" in words(app)
    sentences(app, "path", "frequencies of pairs")
    choose(app, path_who="cs")
    assert len(app.get("plotly_chart")) == 2, "another regularizer has paths of its own"


def test_other_settings_make_it_stale_and_what_stays_is_kept(store, sentences):
    app = open_page("path", **SMALL, run="1")
    app.run()
    assert "6 of 6 fits" in words(app)
    choose(app, path_rank=2)
    sentences(app, "path", "another rank")
    assert list(app.dataframe[0].value["label"]) == ["TI"] * 3 + ["CS"] * 3
    choose(app, path_rank=3)
    assert "Settings changed" not in words(app)
    app.button_group(key="path_penalties").set_value(["cs", "l1"]).run()
    assert "Settings changed" in words(app)
    finish(app, "path_start")
    assert list(app.dataframe[0].value["label"]) == ["ℓ₁"] * 3 + ["CS"] * 3


def test_a_number_of_pairs_is_looked_for_on_every_path(store):
    app = open_page("path", **SMALL | {"target": "5"}, run="1")
    app.run()
    used = {label: set(rows["used_interactions"]) for label, rows in app.dataframe[0].value.groupby("label")}
    near = {label: min(counts - {0}, key=lambda n: max(n / 5, 5 / n)) for label, counts in used.items()}
    assert "Weakest λ with 3 to 6 pairs" in words(app)
    chosen = matched(app.dataframe[0].value, ["label"], 5, "objective").set_index("label")["interactions"]
    assert all(f", {count} pairs" in words(app) for count in chosen)
    # The smallest strength is the nearest for TI, and leaves too few.
    assert min(near["TI"], 5) == near["TI"] == max(used["TI"])


def test_the_path_survives_another_page_and_a_forgetful_server(store):
    app = open_page("path", **SMALL, run="1")
    app.run()
    before = app.dataframe[0].value
    app.switch_page("app.py")
    app.run()
    # A link of the sidebar has no query.
    app.query_params.clear()
    tasks._manager = TaskManager(InlineExecutor())
    app.switch_page("pages/path.py").run()
    app.run()
    assert app.dataframe[0].value.equals(before)
    assert address(app) == ADDRESS | {"run": "1", "metric": "validation_auc"}


@pytest.mark.faultless(False)
def test_nothing_to_fit_and_bad_ends_are_sentences(store, sentences):
    sentences(open_page("path", **SMALL | {"penalties": "none"}), "path", "no penalty")
    app = open_page("path", **SMALL | {"low": "1"})
    sentences(app, "path", "one strength twice")
    app = open_page("path", dataset="balance_scale", points="1")
    assert "13" in numbers(app)


def test_a_new_data_set_brings_its_suggestions(store):
    app = open_page("path", dataset="balance_scale")
    assert (app.select_slider(key="path_low").value, app.select_slider(key="path_high").value) == (2e-5, 0.05)
    assert app.number_input(key="path_rank").value == 4
    choose(app, shared_dataset="diabetes")
    assert app.number_input(key="path_rank").value == 5
    # Up to where ℓ₁ leaves none.
    assert (address(app)["low"], address(app)["high"]) == ("0.003", "100.0")
    assert address(app)["order"] == "informed"


@pytest.mark.faultless(False)
def test_a_failure_is_a_sentence_with_a_way_out(store, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("no more memory")
        yield

    monkeypatch.setattr("fmviz.ui.path.trace", broken)
    app = open_page("path", **SMALL)
    finish(app, "path_start")
    assert app.error


@pytest.mark.parametrize(
    ("query", "gone"),
    [
        ({"level": "simple"}, {"path_validation", "path_lambda_w"}),
        ({"hide": "low,metric,who,at,charts,stop"}, {"path_low", "path_at", "path_stop"}),
        ({"hide": "fit"}, {"path_at"}),
    ],
)
def test_what_is_left_out_leaves_the_rest(store, query, gone):
    app = open_page("path", **SMALL, run="1", **query)
    app.run()
    assert not app.warning
    assert "6 of 6 fits" in words(app)
    assert not gone & {item.key for item in [*app.select_slider, *app.slider, *app.button]}


# ------------------------------------------------------------------------------------------- in a browser


@pytest.mark.slow
@pytest.mark.browser
def test_from_the_example_to_a_run(page, server, wait_idle, shoot):
    page.goto(f"{server.url}/path?dataset=balance_scale&points=5&rank=3&lambda_p=0.001&low=0.0001&high=1")
    page.get_by_text("No path yet").wait_for()
    page.get_by_role("button", name="Run 20 fits").click()
    page.get_by_text("20 of 20 fits in").wait_for(timeout=120_000)
    page.locator(".st-key-path_weights .main-svg").first.wait_for()
    wait_idle(page)
    # A point of a curve is chosen by a click.
    dots = page.locator(".st-key-path_validation_auc_used_interactions .scatterlayer .trace").nth(2)
    dots.locator("path.point").nth(1).click(force=True)
    page.wait_for_url("**at=0.001**")
    assert parse_qs(urlsplit(page.url).query)["at"] == ["0.001"]
    shoot(page, "path-1440-light")
    page.locator(".st-key-path_point").get_by_role("link", name="Open in Train").click()
    page.wait_for_url("**/train?**")
    page.get_by_text("Converged", exact=False).first.wait_for(timeout=120_000)
    assert "lambda_sparse=0.001" in page.url
    expect(page.locator(".st-key-train_matrix .numbers")).to_be_visible()
