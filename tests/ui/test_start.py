"""The start page and what all pages share: navigation, settings, errors."""

from __future__ import annotations

import html
import itertools
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from playwright.sync_api import expect
from programs import run_afresh
from streamlit.testing.v1 import AppTest
from ui.driving import PAGES, ROOT, address, choose, page, press, stage, values, words

from fmviz import report
from fmviz.lab.datasets import DATASETS
from fmviz.lab.search.arena import SEEDS, STRENGTH, arena, arena_truth
from fmviz.metrics import used_pairs
from fmviz.stage import FactorFrame, Panel
from fmviz.stage.pictures import Picture
from fmviz.ui.arena import page_along
from fmviz.ui.escape import plain


@pytest.mark.parametrize(
    ("query", "expected"),
    [({}, "factorization machine"), ({"why": "l1"}, "true pairs"), ({"along": "epochs"}, "random start")],
)
@pytest.mark.faultless
def test_the_start_page_says_what_a_link_asks(store, query, expected):
    app = page("start", **query)
    assert expected in words(app).replace("\\", "")
    assert address(app) == query


def test_a_first_visit_begins_epoch_by_epoch_and_stays_there(store):
    app = page("start")
    app.session_state["fmviz:start:film"] = True
    for _ in range(2):
        app.run()
        assert (stage(app)["player"], values(app, "start_along")) == (True, ("epochs",))
        assert address(app) == {"along": "epochs"}
        assert "Being trained" not in str(stage(app))
    assert stage(choose(app, start_along="lambda"))["driver"] == "start_strength"
    assert not stage(app.run())["player"]
    app = page("start", along="lambda")
    app.session_state["fmviz:start:film"] = True
    assert not stage(app.run())["player"]


def test_a_pair_is_explained_by_the_regularizer_of_a_link(store):
    sent = stage(page("start", why="ti"))
    row, col = arena().pair
    assert sent["mark"] == {"row": row, "col": col, "panel": 2}
    l1, ti = sent["panels"][1:3]
    # What is said of a cell at zero, and of another, is true of it.
    assert [("sharing columns" in l1["notes"][at], "a single group" in ti["notes"][at]) for at in (0, 1)] == [
        (False, True),
        (True, False),
    ]
    assert sent["clickable"] == "explained"
    assert not stage(page("start", hide="why"))["clickable"]


def test_the_strip_and_the_sentence_are_of_all_starts_and_the_pictures_of_the_median(store):
    sent, starts = stage(page("start", strength="0.046")), arena()
    ((row,),) = (chart["rows"] for chart in sent["stage"]["charts"])
    titles = [panel["title"] for panel in sent["panels"][1:]]
    thin, medians = row["series"][:-4], row["series"][-4:]
    assert [line["name"] for line in thin + medians] == [t for t in titles for _ in SEEDS] + titles
    assert [line["thin"] for line in thin + medians] == [True] * len(thin) + [False] * 4
    for line, f1 in zip(medians, starts.f1.values(), strict=True):
        assert line["y"] == pytest.approx(np.quantile(f1, 0.5, axis=0, method="lower"), abs=0.01)
    sentence = sent["stage"]["state"]["sentence"]
    assert sentence.startswith("Along λ, TI uses exactly the true pairs from all 8 starts, at")
    assert f"ℓ₁ from {np.count_nonzero((starts.f1['l1'] == 1.0).any(axis=1))} of 8 starts" in sentence
    assert f"the start of median F1, seed {starts.seed} of 0 to 7" in sentence


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_the_program_in_the_saved_page_prints_the_numbers_of_the_page(threads, tmp_path):
    starts = arena()
    saved = page_along(starts.plan, SimpleNamespace(items=[*starts.fits()]), STRENGTH, starts)
    (program,) = re.findall(r"<h2>Program</h2></summary>\n<pre[^>]*>(.*?)</pre>", saved, re.DOTALL)
    (tmp_path / "saved.py").write_text(html.unescape(program), encoding="utf-8")
    output = run_afresh("saved.py", folder=tmp_path, OPENBLAS_NUM_THREADS=threads, OMP_NUM_THREADS=threads)
    lines = [line.split() for line in output.splitlines()]
    rows = [dict(zip(lines[0], line, strict=True)) for line in lines if line != lines[0]]
    for name, f1 in starts.f1.items():
        own = [row for row in rows if row["regularizer"] == name]
        assert [float(row["support_f1"]) for row in own] == pytest.approx(f1.ravel(), abs=1e-5)
        # Those in the captions of the matrices.
        counts = [int(row["used_interactions"]) for row in own if int(row["seed"]) == starts.seed]
        assert counts == [np.count_nonzero(np.triu(used_pairs(P))) for P in starts.path[name]]


def test_the_saved_page_has_the_story_of_the_page(store):
    saved = page_along((starts := arena()).plan, SimpleNamespace(items=[*starts.fits()]), STRENGTH, starts)
    assert "<h1>Planted interactions: ℓ₁, TI, ℓ₂,₁ and CS along λ</h1>" in saved
    for paragraph in re.findall(r"<p>(.*?)</p>", saved)[:2]:
        assert html.unescape(paragraph) in words(page("start")).replace("*", "")


def test_the_strength_in_a_link_is_the_nearest_that_was_fitted():
    assert page("start", strength="0.3").select_slider[0].value == STRENGTH


def test_every_script_of_the_navigation_exists():
    assert set(PAGES) == {"start", *(path.stem for path in (ROOT / "pages").glob("*.py"))}


def test_the_words_on_the_first_card_are_true():
    from fmviz.lab import operators as lab

    P = lab.sample(200, 30)
    l1, ti = (lab.study(P, lab.VARIANTS[name]).interactions for name in ("l1", "ti"))
    at = lab.EXPONENTS.index(0)
    assert l1[at] > 0.95 * math.comb(200, 2)
    assert 0 < ti[at] < 0.05 * math.comb(200, 2)
    assert l1[at + 2] == 0 < ti[at + 2]


def test_data_set_and_seed_come_from_the_link_and_go_back_to_it(store):
    test = page("compare", seed="77", dataset="monks1")
    assert values(test, "shared_seed", "shared_dataset") == (77, "monks1")
    choose(test, shared_seed=5)
    assert address(test) == {"seed": "5", "dataset": "monks1", "view": "sparsity", "target": "3"}
    choose(test, shared_dataset=next(iter(DATASETS)))
    assert address(test)["seed"] == "5"
    assert "dataset" not in address(test), "the default is left out"


def test_what_nothing_reads_is_not_drawn_and_kept_for_the_other_pages(store):
    test = page("start", seed="77", dataset="monks1")
    assert not {"shared_seed", "shared_dataset"} & {
        control.key for control in [*test.selectbox, *test.number_input]
    }
    test.query_params.clear()
    test.switch_page("pages/compare.py").run()
    assert values(test, "shared_dataset", "shared_seed") == ("monks1", 77)
    choose(test, shared_seed=10)
    test.switch_page("app.py").run()
    test.switch_page("pages/prox.py").run()
    assert test.number_input(key="shared_seed").value == 10


def test_a_bad_link_is_answered_with_a_sentence_and_the_default(store):
    test = page("prox", seed="-3", dataset="monks2", colour="red")
    (notice,) = [w.value for w in test.warning]
    assert "seed = -3 must be a whole number from 0 to 999999. Using seed = 0 instead." in notice
    assert "'monks2'" in notice
    assert "Did you mean 'monks1'" in notice
    assert "'colour', which does not exist on this page" in notice
    assert test.number_input(key="shared_seed").value == 0
    assert address(test) == {}
    test.run()
    assert len(test.warning) == 1  # still there
    choose(test, shared_seed=5)
    assert not test.warning


def test_a_data_set_that_is_not_here_is_explained(monkeypatch):
    monkeypatch.delenv("FMVIZ_DATA", raising=False)
    reason = DATASETS["movielens_100k"].unavailable()
    if reason is None:
        pytest.skip("the data set is here")
    assert [info.value for info in page("start", dataset="movielens_100k").info] == [plain(reason)]


@pytest.mark.parametrize("kind", ["ours", "defect"])
def test_an_exception_becomes_a_message_with_a_way_out(kind, tmp_path):
    # The pages of the application must exist for its links.
    (tmp_path / "pages").mkdir()
    for path in (ROOT / "pages").glob("*.py"):
        (tmp_path / "pages" / path.name).write_text("")
    (tmp_path / "app.py").write_text(
        "from fmviz.engine.settings import ParamSpec\n"
        "from fmviz.ui import shell\n"
        "from fmviz.ui.settings.state import Settings\n"
        "settings = Settings('fails', (ParamSpec('size', 'int', 3, 1, 9),))\n"
        "with shell.page('Fails', settings):\n"
        + (
            "    raise ValueError('size = 4 does not fit; take 3.')\n"
            if kind == "ours"
            else "    raise KeyError('oops')\n"
        )
    )
    test = AppTest.from_file(str(tmp_path / "app.py"), default_timeout=60)
    test.query_params["size"] = "4"
    test.run()
    (error,) = [e.value for e in test.error]
    assert error == "size = 4 does not fit; take 3." if kind == "ours" else "bug in fmviz" in error
    assert "Traceback" not in words(test)
    press(test, "fails_reset_after_error")
    assert address(test) == {}


# ------------------------------------------------------------------------------------------- in a browser


@pytest.mark.slow
@pytest.mark.browser
def test_start_in_a_browser(new_page, server, wait_idle, shoot):
    page = new_page(apart=True)
    page.goto(server.url)
    # The film ends where it was; along λ, the pictures follow the slider.
    film = page.locator(".st-key-start_epochs .player")
    film.get_by_role("button", name="Play").wait_for()
    wait_idle(page)
    assert page.get_by_role("radio", name="Epoch by epoch").is_checked()
    page.get_by_text("Along λ").first.click()
    view = page.locator(".st-key-start_models .gram canvas")
    view.nth(4).wait_for()
    assert view.count() == 5
    captions = page.locator(".st-key-start_models .caption")
    captions.get_by_text("✓ Exact").wait_for()
    shown = captions.all_inner_texts()
    # Dragging λ asks nothing of the server; the keyboard does the same.
    page.get_by_role("slider", name="Strength λ").press("End")
    expect(captions.nth(3)).not_to_have_text(shown[3])
    assert "TI 0" in page.locator(".st-key-start_models .chart svg").get_attribute("aria-label")
    wait_idle(page)
    assert "strength=10" in page.url
    page.get_by_text("Epoch by epoch").click()
    player = page.locator(".st-key-start_epochs .player")
    player.get_by_role("button", name="Play").wait_for()
    assert player.locator("input").get_attribute("aria-valuetext").startswith("Epoch ")
    wait_idle(page)
    shoot(page, "start-1440-light")
    page.get_by_role("link", name="See it").first.click()
    page.wait_for_url(re.compile(r"/prox\?"))
    wait_idle(page)
    assert "log2lambda=0" in page.url
    assert page.get_by_role("slider", name="Strength λ").get_attribute("aria-valuetext") == "2⁰ = 1"


_SAVED = """async () => {
  await new Promise((done) => setTimeout(done, 100)); // the picture follows in the next frame
  const root = document.querySelector('main figure > div').shadowRoot;
  const at = (name) => root.querySelector(name)?.getBoundingClientRect();
  const [slider, line, svg] = ['.player input', '.cross', '.strip svg'].map(at);
  const { value = 0, max = 1 } = root.querySelector('.player input') || {};
  const handle = 16;
  const labels = [...root.querySelectorAll('.chart-head, .values, .bar, .axis')];
  const ends = [...root.querySelectorAll('.end')].map((end) => end.getBoundingClientRect().right);
  return {
    apart: slider ? slider.left + handle / 2 + (value / max) * (slider.width - handle) - line.left : 0,
    below: slider ? slider.top - svg.bottom : 0,
    cut: labels.some((label) => label.scrollWidth > label.clientWidth) || Math.max(0, ...ends) > innerWidth,
    wide: document.documentElement.scrollWidth,
  };
}"""


@pytest.mark.slow
@pytest.mark.browser
def test_in_a_saved_page_the_cursor_is_above_the_handle_and_a_click_explains(page):
    starts = arena()
    page.set_content(page_along(starts.plan, SimpleNamespace(items=[*starts.fits()]), STRENGTH, starts))
    for width, key in itertools.product((1366, 390), ("Home", "End", "ArrowLeft", "PageDown")):
        page.set_viewport_size({"width": width, "height": 800})
        page.get_by_role("slider", name="Step through values of λ").press(key)
        shown = page.evaluate(_SAVED)
        aligned = abs(shown["apart"]) <= 2, 0 <= shown["below"] < 40
        assert (*aligned, shown["cut"], shown["wide"]) == (True, True, False, width), shown
    page.get_by_role("button", name="TI", exact=True).click()
    page.locator(".panel:visible .gram canvas").click(position={"x": 100, "y": 5})
    expect(page.locator(".why")).to_contain_text("In TI they share no column; the weight")


@pytest.mark.slow
@pytest.mark.browser
def test_a_frame_of_the_public_page_gets_the_height_of_its_saved_page(page, tmp_path):
    script = (ROOT / "docs" / "_static" / "site.js").read_text(encoding="utf-8")
    saved = report.page("T", [], [("", Picture([Panel("TI", [FactorFrame(np.eye(3))])]))])
    (tmp_path / "saved.html").write_text(saved, encoding="utf-8")
    site = f'<iframe class="fmviz" data-src="saved.html"></iframe><script>{script}</script>'
    (tmp_path / "index.html").write_text(site, encoding="utf-8")
    page.goto((tmp_path / "index.html").as_uri())
    frame = page.frame_locator("iframe")
    expect(frame.locator(".gram canvas")).to_be_visible()
    expect(frame.locator("h1")).to_be_hidden()
    page.wait_for_function("document.querySelector('iframe').clientHeight > 200")
    needed = page.frames[1].evaluate("document.documentElement.scrollHeight")
    assert needed <= page.locator("iframe").evaluate("(frame) => frame.clientHeight")


@pytest.mark.slow
@pytest.mark.browser
def test_a_tap_marks_the_cell_that_it_explains(browser):
    context = browser.new_context(has_touch=True, is_mobile=True, viewport={"width": 390, "height": 844})
    tapped = context.new_page()
    tapped.set_content(report.page("T", [], [("", Picture([Panel("TI", [FactorFrame(np.ones((4, 1)))])]))]))
    canvas = tapped.locator(".gram canvas")
    for row, column in ((0, 2), (3, 1)):
        box = canvas.bounding_box()
        cell = {"x": (column + 0.5) * box["width"] / 4, "y": (row + 0.5) * box["height"] / 4}
        canvas.tap(position=cell)
        mark = tapped.locator(".gram .mark:visible").first.bounding_box()
        center = mark["x"] + mark["width"] / 2 - box["x"], mark["y"] + mark["height"] / 2 - box["y"]
        assert np.allclose(center, (cell["x"], cell["y"]), atol=3)
    context.close()


@pytest.mark.slow
@pytest.mark.browser
def test_legends_of_a_saved_page_are_whole_on_a_phone(page):
    line = {"color": "#123456", "x": [0, 1], "y": [1, 2]}
    page.set_content(
        report.page(
            "T",
            [],
            [
                (
                    "",
                    Picture(
                        charts=[
                            {
                                "title": "T",
                                "x": "x",
                                "rows": [
                                    {
                                        "series": [
                                            line | {"name": f"training, output {at}"} for at in range(4)
                                        ],
                                        "top": 0.0,
                                    }
                                ],
                            }
                        ]
                    ),
                )
            ],
        )
    )
    page.set_viewport_size({"width": 390, "height": 800})
    expect(page.locator(".readout")).to_have_count(4)
    assert page.evaluate(_SAVED) == {"apart": 0, "below": 0, "cut": False, "wide": 390}


# The clicks, each on the cell of the explained pair in a picture, and what they answer on the first screen.
FIVE_MINUTES = (
    ("TI", "column; the weight, their product summed over columns, is exactly zero"),
    ("ℓ₁", "features of different groups end up sharing columns"),
    ("CS", "CS removes whole rows"),
)


@pytest.mark.slow
@pytest.mark.browser
def test_three_clicks_lead_to_three_regularizers_and_their_reasons(page, server, wait_idle):
    page.set_viewport_size({"width": 1366, "height": 768})
    page.goto(f"{server.url}/?along=lambda")
    page.locator(".st-key-start_models .caption").get_by_text("✓ Exact").wait_for()
    wait_idle(page)
    focused = "document.activeElement.matches('.st-key-start_strength input')"
    # The first Tab comes to the link that skips the navigation; λ is within ten.
    for key in ("Tab", "Enter", *["Tab"] * 9):
        if not page.evaluate(focused):
            page.keyboard.press(key)
    assert page.evaluate(focused)
    row, col = arena().pair
    for title, reason in FIVE_MINUTES:
        panel = page.locator(".st-key-start_models .panel").filter(has_text=title).last
        canvas = panel.locator(".gram canvas")
        cell = canvas.bounding_box()["width"] / arena_truth().shape[0]
        canvas.click(position={"x": (col + 0.5) * cell, "y": (row + 0.5) * cell})
        answer = page.locator(".st-key-start_models .why")
        expect(answer).to_contain_text(re.compile(f"In {title} they share .*{re.escape(reason)}"))
        assert answer.bounding_box()["y"] + answer.bounding_box()["height"] <= 768
        assert panel.locator(".picture.rows canvas").is_visible()


@pytest.mark.slow
@pytest.mark.browser
def test_the_tour_fits_a_small_screen(page, server, wait_idle):
    page.set_viewport_size({"width": 1366, "height": 768})
    page.goto(f"{server.url}/?lesson=tour&step=1")
    for button in ("TI, which", "Next", "No", "Next"):
        page.get_by_role("button", name=button).first.click()
        wait_idle(page)
        view = page.locator(".st-key-start_models")
        tops = [canvas.bounding_box()["y"] for canvas in view.locator(".gram canvas").all()]
        assert tops == [tops[0]] * 5
        words = [each.bounding_box() for each in view.locator(".caption, .why").all()]
        assert max(box["y"] + box["height"] for box in words if box) <= 768
