"""The page Train in a real browser: live curves, reloads, links, keys, downloads."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

# How a run with tol=0 ends: at its limit of epochs.
LIMIT = "Not converged"
SMALL = "train?level=expert&dataset=balance_scale&rank=3&lambda_p=0.001&lambda_sparse=0.001&tol=0.0"
ENDLESS = f"{SMALL}&max_epochs=100000&speed=slow"


def epoch(page: Any) -> int:
    """Return the epoch that the stage shows."""
    shown = page.locator(".st-key-train_matrix .numbers div", has_text="Epoch").locator("dd")
    return int(shown.inner_text().replace(",", ""))


def wait_for_state(page: Any, word: str | re.Pattern[str], seconds: float = 60) -> None:
    page.locator(".st-key-train_matrix .status").get_by_text(word).first.wait_for(timeout=1000 * seconds)


def press(page: Any, name: str) -> None:
    button(page, name).click()


def button(page: Any, name: str) -> Any:
    # A button in a row has an invisible double, by which the row measures its width.
    return page.locator(f".st-key-train_{name} button").first


def plot(page: Any, name: str) -> Any:
    return page.locator(f".st-key-train_{name} .js-plotly-plot:visible")


def wait_for_epoch(page: Any, least: int) -> None:
    page.wait_for_function(
        """least => {
          const host = document.querySelector('.st-key-train_matrix [data-testid="stBidiComponentIsolated"]');
          const box = host && host.shadowRoot && host.shadowRoot.querySelector(".numbers dd");
          return box && Number(box.textContent.replace(/,/g, '')) >= least;
        }""",
        arg=least,
    )


def asked(page: Any, name: str) -> str:
    return parse_qs(urlsplit(page.url).query).get(name, [""])[0]


def content(page: Any, key: str) -> bytes:
    with page.expect_download() as caught:
        press(page, key)
    return caught.value.path().read_bytes()


def wait_for_query(page: Any, name: str, pattern: str) -> None:
    page.wait_for_function(
        "([name, pattern]) => new RegExp(pattern).test(new URLSearchParams(location.search).get(name) || '')",
        arg=[name, pattern],
    )


def test_play_draws_live_and_ends(server, page):
    page.goto(f"{server.url}/{SMALL}&max_epochs=300")
    # The truth is there first, and nothing learned beside it.
    stage = page.locator(".st-key-train_matrix")
    stage.get_by_text("Press Play").first.wait_for()
    stage.locator(".title").get_by_text("Truth").wait_for()
    press(page, "play")
    wait_for_state(page, "Running")
    wait_for_epoch(page, 3)
    line = stage.locator(".chart polyline").first
    line.wait_for(state="attached")
    matrix = stage.locator("canvas:visible").first
    matrix.evaluate("canvas => { canvas.dataset.mine = 'yes'; }")
    before, drawn = epoch(page), line.get_attribute("points")
    wait_for_epoch(page, before + 5)
    expect(line).not_to_have_attribute("points", str(drawn))
    assert matrix.get_attribute("data-mine") == "yes"
    assert button(page, "play").is_disabled()
    wait_for_state(page, LIMIT)
    assert epoch(page) == 300
    page.locator(".st-key-train_curves summary").click()
    plot(page, "objective").wait_for()
    assert plot(page, "objective").evaluate("figure => figure._fullData[0]._length") == 301
    page.locator(".st-key-train_exports").wait_for()
    assert button(page, "play").is_enabled()


def test_a_strength_moved_at_the_end_goes_on_and_moves_no_picture(server, page):
    page.goto(f"{server.url}/{SMALL}&max_epochs=40&speed=full&play=1")
    wait_for_state(page, LIMIT)
    pictures = page.locator(".st-key-train_matrix").locator("canvas:visible, .chart svg")
    # The pictures are drawn after the state is shown.
    page.locator(".st-key-train_matrix canvas:visible").first.wait_for()
    page.wait_for_timeout(1_000)
    before = [pictures.nth(n).bounding_box() for n in range(pictures.count())]
    page.locator(".st-key-train_strength").get_by_role("slider").press("ArrowRight")
    wait_for_epoch(page, 80)
    wait_for_state(page, LIMIT)
    assert asked(page, "changes") == "40:lambda_sparse:0.002"
    charts = page.locator(".st-key-train_matrix .chart svg")
    assert charts.get_by_text("λ = 0.002").count() == charts.count()
    assert [pictures.nth(n).bounding_box() for n in range(pictures.count())] == before


def test_a_run_reaches_a_browser_whose_live_channel_is_blocked(server, new_page):
    page, passes = new_page(apart=True), []
    page.route_web_socket(
        "**/_fmviz/live", lambda socket: socket.connect_to_server() if passes else socket.close()
    )
    page.goto(f"{server.url}/{SMALL}&max_epochs=30&speed=slow&play=1")
    notice = page.locator(".fmviz-cut")
    notice.get_by_text(re.compile(r"this browser cannot reach [\d.:]+/_fmviz/live")).wait_for()
    guide = (Path(__file__).parents[2] / "docs/guide/serving.md").read_text(encoding="utf-8")
    assert all(line in guide for line in notice.locator("pre").text_content().splitlines())
    wait_for_epoch(page, 3)
    assert page.locator(".st-key-train_matrix .chart polyline").first.get_attribute("points")
    wait_for_state(page, LIMIT)
    assert (epoch(page), notice.count()) == (30, 0)
    press(page, "play")
    notice.wait_for()
    passes.append(True)
    notice.wait_for(state="detached")
    wait_for_state(page, "Running")


@pytest.mark.slow
def test_a_bar_moves_where_the_live_channel_is_blocked(server, new_page):
    page = new_page(apart=True)
    page.route_web_socket("**/_fmviz/live", lambda socket: socket.close())
    page.goto(f"{server.url}/path?level=expert&rank=60")
    page.locator("[class*=st-key-path_start] button").first.click()
    bar = page.locator(".fmviz-progress")
    bar.get_by_text("Live updates are blocked").wait_for()
    bar.get_by_text(re.compile("^[1-9]\\d* of 52 fits")).wait_for()
    page.locator("[class*=st-key-path_stop] button").first.click()
    bar.wait_for(state="detached")


def test_a_cookie_that_another_port_has_set_runs_no_script(server, new_page):
    page, dialogs = new_page(apart=True), []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.context.add_cookies(
        [{"name": "fmviz-lessons", "value": "x'-alert(document)-'y:1", "url": server.url}]
    )
    page.goto(f"{server.url}/train?lesson=heatmap&step=1")
    page.wait_for_function("/fmviz-lessons=heatmap:1(;|$)/.test(document.cookie)")
    assert dialogs == []


@pytest.mark.slow
def test_a_hidden_tab_asks_for_nothing_and_goes_on_where_it_is(server, new_page):
    page = new_page(apart=True)
    sent: list[float] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda data: sent.append(len(data))))
    page.goto(f"{server.url}/{ENDLESS}&play=1")
    wait_for_state(page, "Running")
    wait_for_epoch(page, 1)
    page.evaluate("""() => {
      Object.defineProperty(document, "hidden", {get: () => window.covered, configurable: true});
      window.covered = true;
    }""")
    page.wait_for_timeout(2_500)
    before, stood = len(sent), epoch(page)
    page.wait_for_timeout(2_000)
    assert len(sent) == before
    page.evaluate("""() => {
      window.covered = false;
      document.dispatchEvent(new Event("visibilitychange"));
    }""")
    wait_for_epoch(page, stood + 1)
    press(page, "stop")


# Count how often the canvas of the matrix is another one, or gone, from its first picture on.
WATCH = """() => {
  window.changes = 0;
  let first = null;
  const look = () => {
    const host = document.querySelector('.st-key-train_matrix [data-testid="stBidiComponentIsolated"]');
    const canvas = host && host.shadowRoot && host.shadowRoot.querySelector("canvas");
    if (first && canvas !== first) window.changes += 1;
    first = canvas || first;
    requestAnimationFrame(look);
  };
  look();
}"""


@pytest.mark.slow
def test_the_matrix_stays_the_same_element_on_a_busy_machine(server, page, wait_idle):
    page.goto(f"{server.url}/{SMALL}&max_epochs=300")
    wait_idle(page)
    # So slow that data overtake each other on their way into the component.
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": 6})
    press(page, "play")
    wait_for_epoch(page, 1)
    page.evaluate(WATCH)
    wait_for_state(page, LIMIT, 240)
    page.wait_for_timeout(3000)
    assert page.evaluate("window.changes") == 0


@pytest.mark.slow
def test_a_reload_reconnects_and_the_controls_work(server, page):
    page.goto(f"{server.url}/{ENDLESS}&play=1")
    wait_for_state(page, "Running")
    wait_for_epoch(page, 2)
    first, before = asked(page, "run"), epoch(page)
    page.reload()
    wait_for_state(page, "Running")
    wait_for_epoch(page, before + 1)
    assert asked(page, "run") == first
    press(page, "pause")
    wait_for_state(page, "Paused")
    stood = epoch(page)
    page.wait_for_timeout(800)
    assert epoch(page) == stood
    press(page, "step")
    wait_for_epoch(page, stood + 1)
    wait_for_state(page, f"Paused after {stood + 1} epochs")
    page.locator("h1").click()
    page.keyboard.press("s")
    wait_for_state(page, f"Paused after {stood + 2} epochs")
    assert epoch(page) == stood + 2
    press(page, "stop")
    wait_for_state(page, "Stopped")


@pytest.mark.slow
def test_a_server_that_is_started_again_goes_on_from_the_address(serve_anew, new_page, wait_idle):
    page = new_page(apart=True)
    with serve_anew() as server:
        page.goto(server.url)
        page.get_by_test_id("stSidebar").get_by_role("link", name="Train").click()
        wait_idle(page)
        page.locator(".st-key-train_speed").get_by_text("Slow", exact=True).first.click()
        press(page, "play")
        wait_for_state(page, "Running")
        wait_for_epoch(page, 3)
        wait_for_query(page, "run", ".")
        wait_idle(page)
        before = page.url
    page.wait_for_timeout(4_000)
    assert page.locator(".fmviz-cut").count() == 0
    with serve_anew():
        wait_for_state(page, "Paused")
        page.get_by_text("This run was interrupted").wait_for()
        assert page.url == before
        press(page, "play")
        wait_for_state(page, "Running")
    page.errors.clear()  # of Streamlit, which has missed its server


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "letter", "shape"), [("", "P", (4, 3)), ("&model=qr&regularizer=l1", "W", (4, 4))]
)
def test_downloads_hold_the_run(server, page, more, letter, shape):
    page.goto(f"{server.url}/{SMALL}{more}&max_epochs=12&speed=full&play=1")
    curves = content(page, "curves_csv").decode().splitlines()
    assert len(curves) == 14
    assert curves[0].startswith("epoch,seconds,objective,")
    model = np.load(io.BytesIO(content(page, "npz")))
    assert {"P", "W"} & {*model} == {letter}
    assert model[letter].shape == shape
    assert model["feature_names"].tolist()[0] == "left weight"


@pytest.mark.slow
def test_triples_are_looked_back_at_and_taken_away(server, page):
    model = "&model=hofm&regularizer=omega_ti&init_scale=0.1&order=3"
    page.goto(f"{server.url}/{SMALL}{model}&max_epochs=30&speed=full&play=1")
    page.get_by_text("The triples with").wait_for(timeout=120_000)
    view = page.locator(".st-key-train_matrix")
    view.get_by_text(re.compile(r"epoch \d+: \d+ triples")).first.wait_for()
    page.get_by_role("slider", name="Look back").focus()
    page.keyboard.press("Home")
    view.get_by_text("epoch 0: 4 triples").first.wait_for()
    model = np.load(io.BytesIO(content(page, "npz")))
    assert model["P"].shape == (4, 6)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1440, 700])
def test_formulae_of_higher_orders_fit_the_drawer_of_settings(server, page, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{server.url}/train?dataset=planted_triples&model=hofm&regularizer=omega_ti")
    page.locator(".st-key-train_settings button").first.click()
    display = page.locator(".st-key-train_penalty .katex-display")
    display.nth(1).wait_for()
    page.wait_for_function(
        """() => [...document.querySelectorAll('.st-key-train_penalty .katex-display')].every(
          box => box.clientWidth > 0 && box.scrollWidth <= box.clientWidth + 3)"""
    )


LINK = (
    "train?level=expert&dataset=balance_scale&rank=3&lambda_p=0.001&lambda_sparse=0.001&init_scale=0.3&tol=0.0"
    "&max_epochs=40&speed=slow"
)


@pytest.mark.slow
def test_a_run_is_slowed_down_changed_and_looked_into(server, page, wait_idle):
    page.goto(f"{server.url}/{LINK}")
    wait_idle(page)
    press(page, "play")
    wait_for_state(page, "Running")
    press(page, "pause")
    wait_for_state(page, "Paused")
    wait_idle(page)
    press(page, "step")
    wait_idle(page)
    # On at full speed.
    page.locator(".st-key-train_speed").get_by_text("Full speed", exact=True).first.click()
    wait_idle(page)
    press(page, "play")
    page.locator(".st-key-train_exports").wait_for()
    wait_idle(page)
    # The truth, pair by pair, at every epoch.
    page.locator(".st-key-train_support").get_by_text("Compare with the truth").click()
    wait_for_query(page, "support", "^1$")
    wait_idle(page)
    view = page.locator(".st-key-train_matrix")
    view.get_by_text(re.compile(r"True positive: \d")).first.wait_for()
    view.get_by_text(re.compile(r"epoch 40: F1 [01]\.\d+")).first.wait_for()
    wait_idle(page)
    page.get_by_role("slider", name="Look back").focus()
    page.keyboard.press("Home")
    view.get_by_text(re.compile(r"epoch 0: F1 0\.5")).first.wait_for()
    counts = view.locator(".swatch").all_inner_texts()
    assert {"True positive: 2", "False positive: 4", "False negative: 0", "True negative: 0"} <= set(counts)
    wait_idle(page)
    # A click tells why.
    canvas = view.locator(".picture.gram canvas:visible").first
    size = canvas.bounding_box()
    canvas.click(position={"x": 0.63 * size["width"], "y": 0.12 * size["height"]})
    wait_for_query(page, "cell_i", "^0$")
    wait_for_query(page, "cell_j", "^2$")
    page.get_by_text(re.compile("left weight and right weight (do not )?interact")).wait_for()
    page.locator(".st-key-train_why .js-plotly-plot:visible").first.wait_for()
    wait_idle(page)


@pytest.mark.slow
def test_playing_again_at_once_leaves_the_strengths(server, page, wait_idle):
    page.goto(f"{server.url}/{LINK}")
    wait_idle(page)
    sliders = page.locator(".st-key-train_main").get_by_role("slider")
    for _ in range(2):  # The second time the sliders come back with a run of the page that another overtakes.
        button(page, "play").dblclick()
        wait_for_state(page, "Running")
        shown = sliders.evaluate_all("all => all.map(e => e.getAttribute('aria-valuetext'))")
        assert shown == ["0.001"]
        assert asked(page, "changes") == ""
        press(page, "stop")
        wait_for_state(page, "Stopped")
        wait_idle(page)


@pytest.mark.slow
def test_the_address_follows_a_slider_that_redraws_a_fragment_alone(server, page, wait_idle):
    page.goto(f"{server.url}/prox")
    wait_idle(page)
    page.locator(".st-key-prox_strength").get_by_role("slider").first.press("ArrowRight")
    wait_for_query(page, "log2lambda", ".")
