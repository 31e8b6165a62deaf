"""The matrix view: its payload, its colours, and its behaviour in a browser."""

from __future__ import annotations

import csv
import io
import itertools
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from ui.driving import decode

from fmviz import report
from fmviz.figures import palette
from fmviz.stage import (
    MAX_GRAM_FEATURES,
    NOT_AN_INTERACTION,
    CellClass,
    ClassesFrame,
    CodesFrame,
    FactorFrame,
    Mark,
    Panel,
    View,
    encode_codes,
    encode_factor,
    module,
)
from fmviz.stage.pictures import Picture

APP = "tests/ui/apps/matrix_view_app.py"


# ------------------------------------------------------------------------------------------------ encoding


def test_a_factor_keeps_its_zeros_and_its_non_zeros():
    values = np.array([[0.0, 1e-300, -1e-300], [-0.0, 1e300, -5e-324], [1.5, 1e-46, -1e-40]])
    single = encode_factor(values)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single == 0, values == 0)
    np.testing.assert_array_equal(np.sign(single), np.sign(values))
    assert np.isfinite(single).all()
    assert single[2, 0] == 1.5


def test_classes_are_sent_with_their_names_colours_and_counts():
    codes = np.array([[NOT_AN_INTERACTION, 1], [1, NOT_AN_INTERACTION]], dtype=np.int8)
    classes = (CellClass("no", "#ffffff", "#000000"), CellClass("yes", "#00ff00", "#00aa00"))
    panel = Panel("Right or wrong", [ClassesFrame(codes, (0, 1), key="a")], classes=classes, gram_label="W")
    header, body = decode(View([panel], mark=Mark(0, 1), clickable=True).encode())
    (drawn,) = header["panels"]
    assert drawn["kind"] == "classes"
    assert [kind["label"] for kind in drawn["classes"]] == ["no", "yes"]
    assert drawn["frames"][0]["counts"] == [0, 1]
    assert np.frombuffer(body, np.int8)[:4].tolist() == codes.ravel().tolist()
    assert header["skipped"]
    assert header["mark"] == {"row": 0, "col": 1, "panel": 0}


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_factor_that_is_not_finite_is_refused_by_its_place(bad):
    values = np.ones((3, 2))
    values[1, 0] = bad
    with pytest.raises(ValueError, match=r"panel 'A', frame 0: values\[1, 0\] = .* cannot be drawn"):
        View([Panel("A", [FactorFrame(values)])]).encode()


def test_codes_keep_zeros_and_tiny_values():
    values = np.array([[0.0, 1e-12, -1e-12], [0.5, -1.0, 1.0]])
    codes, scale = encode_codes(values)
    assert codes.dtype == np.int8
    assert scale == 1.0
    np.testing.assert_array_equal(codes, [[0, 1, -1], [90, -127, 127]])
    np.testing.assert_allclose(np.square(codes / 127.0), np.abs(values), atol=0.005)
    codes, scale = encode_codes(np.diag([9.0, 9.0]) + 0.5, grey_diagonal=True)
    assert scale == 0.5
    np.testing.assert_array_equal(codes, [[NOT_AN_INTERACTION, 127], [127, NOT_AN_INTERACTION]])
    assert encode_codes(np.zeros((2, 2)))[1] == 1.0


def test_the_payload_holds_the_numbers_and_one_scale_over_all_panels_and_frames(rng):
    first, second = rng.standard_normal((2, 5, 3))
    panels = [
        Panel("A", [FactorFrame(first, "x", "one"), FactorFrame(2 * first, "y", "two")], color="#123456"),
        Panel("B", [FactorFrame(second, "x"), FactorFrame(first, "y")]),
    ]
    header, body = decode(View(panels, driver_key="lam", feature_names=list("abcde")).encode())
    got = np.frombuffer(body, np.float32, 15, header["panels"][1]["frames"][0]["at"]).reshape(5, 3)
    np.testing.assert_array_equal(got, second.astype(np.float32))
    # Equal arrays travel once.
    assert header["panels"][0]["frames"][0]["at"] == header["panels"][1]["frames"][1]["at"]
    assert len(body) == 3 * 15 * 4
    top = max(np.abs(2 * first).max(), np.abs(second).max())
    assert header["scales"]["factor"] == pytest.approx(top, rel=1e-6)
    grams = [np.abs(q @ q.T - np.diag(np.diag(q @ q.T))).max() for q in (first, 2 * first, second)]
    assert header["scales"]["gram"] == pytest.approx(max(grams), rel=1e-5)
    assert header["palette"]["light"]["zero"] == palette.LIGHT.zero


def test_codes_travel_as_they_are_with_their_labels():
    codes = np.array([[0, 1, -1], [127, -127, NOT_AN_INTERACTION]], dtype=np.int8)
    panel = Panel("T", [CodesFrame(codes, 2.0)], row_labels=["a", "b"], col_labels=["c", "d", "e"])
    header, body = decode(View([panel]).encode())
    (drawn,) = header["panels"]
    assert (drawn["kind"], drawn["rows"], drawn["cols"]) == ("codes", 2, 3)
    assert drawn["rowLabels"] == ["a", "b"]
    np.testing.assert_array_equal(np.frombuffer(body, np.int8, 6).reshape(2, 3), codes)
    assert header["scales"]["gram"] == 2.0
    assert header["skipped"] == "diagonal, not an interaction"


def test_equal_arguments_give_equal_bytes_and_different_ones_a_different_digest():
    values = np.eye(3)
    first, two = (View([Panel("A", [FactorFrame(values.copy())])]).encode() for _ in range(2))
    assert first == two
    other = View([Panel("A", [FactorFrame(2 * values)])]).encode()
    assert decode(other)[0]["digest"] != decode(first)[0]["digest"]


EYE = FactorFrame(np.eye(3), "x")
OTHER = FactorFrame(np.eye(3), "y")


@pytest.mark.parametrize(
    ("panels", "options", "message"),
    [
        ([Panel("A", [EYE, EYE])], {"driver_key": "s"}, "missing or repeated frame keys"),
        ([Panel("A", [EYE, OTHER]), Panel("B", [OTHER, EYE])], {"driver_key": "s"}, "different frame keys"),
        ([Panel("A", [FactorFrame(np.ones((MAX_GRAM_FEATURES + 1, 1)))])], {}, "pool them into tiles"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_a_sentence(panels, options, message):
    with pytest.raises(ValueError, match=message):
        View(panels, **options).encode()


# ------------------------------------------------------------------------------------------------- colours

XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]]
)
SIGHT = {  # Machado, Oliveira and Fernandes (2009), complete deficiency, on linear RGB
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def linear(color: str) -> np.ndarray:
    v = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4)


def lab(color: str, sight: np.ndarray) -> np.ndarray:
    xyz = XYZ @ np.clip(sight @ linear(color), 0, 1) / np.array([0.95047, 1.0, 1.08883])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(a: str, b: str) -> float:
    low, high = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (a, b))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("theme", [palette.LIGHT, palette.DARK], ids=["light", "dark"])
def test_zero_and_diagonal_lie_outside_the_ramp_for_every_sight(theme, sight):
    def apart(a: str, b: str) -> float:
        return float(np.linalg.norm(lab(a, SIGHT[sight]) - lab(b, SIGHT[sight])))

    ramp = theme.negative + theme.positive
    assert min(apart(c, theme.zero) for c in ramp) > 18
    assert min(apart(c, theme.diagonal) for c in (*ramp, theme.zero)) > 14
    assert min(apart(a, b) for a, b in zip(theme.negative, theme.positive, strict=True)) > 20


@pytest.mark.parametrize("sight", SIGHT)
def test_regularizers_are_told_apart_and_readable_on_both_themes(sight):
    colors = list(palette.REGULARIZER_COLORS.values())
    for a, b in itertools.combinations(colors, 2):
        assert np.linalg.norm(lab(a, SIGHT[sight]) - lab(b, SIGHT[sight])) > 20
    for color in [*colors, palette.NEUTRAL]:
        assert contrast(color, "#ffffff") > 2.8
        assert contrast(color, "#0e1117") > 2.8


# ------------------------------------------------------------------------------------------------- browser

# What the application draws, before any regularizer.
P = np.random.default_rng(3).standard_normal((24, 6))
ROOT_OF_VIEW = """() => {
  const hosts = [...document.querySelectorAll('[data-testid="stBidiComponentIsolated"]')];
  return hosts.map((h) => h.shadowRoot.querySelector('.fmviz-matrix-view')).filter(Boolean)[0];
}"""
READ = f"""() => {{
  const root = ({ROOT_OF_VIEW})();
  const pixels = [...root.querySelectorAll('.stage canvas')].map((c) => {{
    const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
    return [c.width, c.height, [...d]];
  }});
  return {{
    pixels,
    frame: root.dataset.frame,
    theme: root.dataset.theme,
    captions: [...root.querySelectorAll('.caption')].map((c) => c.textContent),
    labels: [...root.querySelectorAll('.figure')].map((c) => c.getAttribute('aria-label')),
    overflow: root.scrollWidth > root.clientWidth + 1,
  }};
}}"""


def colors_of(pixels: list) -> np.ndarray:
    width, height, data = pixels
    return np.array(data, dtype=np.uint8).reshape(height, width, 4)[:, :, :3]


def bytes_of(color: str) -> list[int]:
    return [int(color[i : i + 2], 16) for i in (1, 3, 5)]


@pytest.fixture
def open_view(serve, new_page, wait_idle):
    def open_it(query: str = "", **options):
        options = {"color_scheme": "light", **options}
        page = new_page(**options)
        page.goto(f"{serve(APP).url}/{query}")
        page.locator(".fmviz-matrix-view .panel").first.wait_for()
        wait_idle(page)
        return page

    return open_it


def slider(page):
    return page.locator('.st-key-strength-of-it input[type="range"]')


def wait_frame(page, key: str) -> None:
    page.wait_for_function(f"(key) => ({ROOT_OF_VIEW})().dataset.frame === key", arg=key)


@pytest.mark.browser
@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.slow), "dark"])
def test_zeros_have_their_own_colour_and_the_diagonal_is_grey(open_view, shoot, scheme):
    page = open_view(color_scheme=scheme)
    seen = page.evaluate(READ)
    assert seen["theme"] == scheme
    theme = palette.DARK if scheme == "dark" else palette.LIGHT
    zeros = np.abs(P) <= 1.6 * 0.5
    factor, gram = (colors_of(x) for x in seen["pixels"][:2])
    np.testing.assert_array_equal((factor == bytes_of(theme.zero)).all(axis=2), zeros)
    apart = ((~zeros).astype(int) @ (~zeros).T.astype(int)) == 0
    np.fill_diagonal(apart, False)
    assert apart.any()
    np.testing.assert_array_equal((gram == bytes_of(theme.zero)).all(axis=2), apart)
    np.testing.assert_array_equal((gram == bytes_of(theme.diagonal)).all(axis=2), np.eye(24, dtype=bool))
    assert "Panel ti: heatmap of Q, 24 by 6 and QQᵀ, 24 by 24. Panel ti at λ = 0.5" in seen["labels"][0]
    shoot(page, f"matrix_view-{scheme}")


@pytest.mark.browser
def test_the_view_starts_at_the_slider_and_follows_the_arrow_keys(open_view):
    page = open_view()
    before = page.evaluate(READ)
    assert before["frame"] == "λ = 0.5"
    slider(page).focus()
    page.keyboard.press("ArrowRight")
    wait_frame(page, "λ = 0.75")
    after = page.evaluate(READ)
    assert after["captions"] != before["captions"]
    assert after["pixels"] != before["pixels"]
    page.keyboard.press("End")
    wait_frame(page, "λ = 2")
    assert page.locator(".fmviz-matrix-view .gram .notice").nth(1).text_content() == "All zero"
    assert "All zero" in page.evaluate(READ)["labels"][1]


@pytest.mark.slow
@pytest.mark.browser
def test_the_view_follows_a_drag_before_it_is_released(open_view, wait_idle):
    page = open_view("?d=60&k=8")
    box = (
        page.locator('.st-key-strength-of-it [data-testid="stSliderThumbValue"]').locator("..").bounding_box()
    )
    track = page.locator(".st-key-strength-of-it [data-testid='stSlider']").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    before = page.evaluate(READ)
    page.mouse.move(x, y)
    page.mouse.down()
    frames, pictures = [], []
    for part in (0.5, 0.75, 1.0):
        page.mouse.move(track["x"] + 8 + part * (track["width"] - 16), y, steps=4)
        page.wait_for_timeout(80)
        seen = page.evaluate(READ)
        frames.append(seen["frame"])
        pictures.append(seen["pixels"])
    assert frames == ["λ = 1", "λ = 1.5", "λ = 2"]
    assert before["pixels"] != pictures[0] != pictures[1]
    assert page.get_by_text("script runs: 1").is_visible(), "the script ran before the release"
    page.mouse.up()
    page.get_by_text("script runs: 2").wait_for()
    wait_idle(page)
    assert page.evaluate(READ)["frame"] == "λ = 2"


@pytest.mark.slow
@pytest.mark.browser
def test_a_rerun_does_not_send_the_matrices_again(serve, new_page, wait_idle):
    received: list[int] = []
    page = new_page(color_scheme="light")
    page.on("websocket", lambda ws: ws.on("framereceived", lambda frame: received.append(len(frame))))
    page.goto(f"{serve(APP).url}/?d=200&k=30&panels=4")
    page.locator(".fmviz-matrix-view .panel").first.wait_for()
    wait_idle(page)
    assert sum(received) > 300_000
    received.clear()
    slider(page).focus()
    page.keyboard.press("ArrowRight")
    page.get_by_text("script runs: 2").wait_for()
    wait_idle(page)
    assert sum(received) < 20_000
    assert page.evaluate(READ)["frame"] == "λ = 0.75"


CALLS = """async ([code, payload]) => {
  const { default: draw } = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
  const host = document.body.appendChild(document.createElement("div"));
  const parentElement = host.attachShadow({ mode: "open" });
  const call = () => draw({ data: new Uint8Array(payload), parentElement });
  const canvas = () => parentElement.querySelector("canvas");
  const seen = [];
  const first = call();
  const before = canvas();
  first(); // Newer data came before this call was through,
  seen.push(canvas() === before);
  const second = call();
  const third = call();
  second(); // or after the newer one.
  seen.push(before !== null && canvas() === before);
  host.remove();
  third();
  seen.push(canvas() === null);
  return seen;
}"""


@pytest.mark.browser
def test_only_the_end_of_the_component_ends_the_view(new_page):
    """Streamlit cleans up at once after a call that newer data overtook, which a busy machine sees often."""
    payload = View([Panel("A", [FactorFrame(np.eye(4))])]).encode()
    assert new_page().evaluate(CALLS, [module(), list(payload)]) == [True, True, True]


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [700, 1440])
def test_nothing_overflows(open_view, shoot, scheme, width):
    page = open_view(
        "?panels=3&tiles=1&empty=1", viewport={"width": width, "height": 1000}, color_scheme=scheme
    )
    assert not page.evaluate(READ)["overflow"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for panel in page.locator(".fmviz-matrix-view .panel").all():
        box = panel.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    assert page.get_by_text("Nothing to show yet.").is_visible()
    shoot(page, f"matrix_view-{width}-{scheme}")


@pytest.mark.slow
@pytest.mark.browser
def test_hovering_tells_the_value(open_view):
    page = open_view("?tiles=1")
    Q = np.sign(P) * np.maximum(np.abs(P) - 0.8, 0)
    gram = Q @ Q.T
    support = (Q != 0).astype(int)
    i, j = next((int(a), int(b)) for a, b in np.argwhere((support @ support.T) == 0) if a != b)
    a, b = (int(x) for x in np.unravel_index(np.argmax(np.triu(gram, 1)), gram.shape))
    tip = page.locator(".fmviz-matrix-view .tip").first

    def at(which: str, number: int, row: int, col: int, rows: int, cols: int) -> str:
        canvas = page.locator(f".fmviz-matrix-view .{which} canvas").nth(number)
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        page.mouse.move(
            box["x"] + (col + 0.5) * box["width"] / cols, box["y"] + (row + 0.5) * box["height"] / rows
        )
        page.wait_for_timeout(50)
        return "".join(tip.locator(".where, .value").all_text_contents())

    assert at("gram", 0, i, j, 24, 24) == f"feature {i} × feature {j}exact zero: no shared column"
    text = at("gram", 0, a, b, 24, 24)
    assert text.startswith(f"feature {a} × feature {b}")
    assert float(text.removeprefix(f"feature {a} × feature {b}")) == pytest.approx(gram[a, b], rel=1e-3)
    assert at("gram", 0, 5, 5, 24, 24) == "feature 5diagonal: not an interaction"
    row, col = (int(x) for x in np.argwhere(Q == 0)[0])
    assert at("factor", 0, row, col, 24, 6) == f"q[{row}, {col}]exact zero"
    tiles = [at("gram", 2, 1, column, 12, 12) for column in range(12)]
    assert tiles[2].startswith("features 100–199 × features 200–299")
    assert any("≈" in text for text in tiles)
    page.mouse.move(2, 2)
    page.wait_for_timeout(50)
    assert not tip.is_visible()


@pytest.mark.slow
@pytest.mark.browser
def test_pictures_and_numbers_download(open_view, tmp_path):
    page = open_view("?tiles=1")
    got = {}
    for ending, name in (
        ("png", "Download the picture as PNG"),
        ("svg", "Download the picture as SVG"),
        ("csv", "Download the non-zero numbers as CSV"),
    ):
        with page.expect_download() as download:
            page.get_by_role("button", name=name).click()
        assert re.fullmatch(rf"matrices-.*0\.5\.{ending}", download.value.suggested_filename)
        path = tmp_path / ending
        download.value.save_as(path)
        got[ending] = path.read_bytes()
    assert got["png"][:8] == b"\x89PNG\r\n\x1a\n"
    svg = ElementTree.fromstring(got["svg"])
    assert {"Panel ti", "exact zero"} <= {node.text for node in svg.iter("{http://www.w3.org/2000/svg}text")}
    assert len(list(svg.iter("{http://www.w3.org/2000/svg}image"))) == 7  # five matrices and two ramps
    rows = list(csv.DictReader(io.StringIO(got["csv"].decode())))
    assert {row["panel"] for row in rows} == {"Panel ti", "Panel l21", "Tiles"}
    Q = P * np.maximum(1 - 0.8 / np.abs(P), 0)  # the frame λ = 0.5
    factor = [row for row in rows if row["panel"] == "Panel ti" and row["matrix"] == "Q"]
    assert len(factor) == np.count_nonzero(Q)
    i, s = np.argwhere(Q)[0]
    assert (factor[0]["row"], factor[0]["column"]) == (f"feature {i}", str(s))
    assert float(factor[0]["value"]) == pytest.approx(Q[i, s], rel=1e-6)
    pairs = [row for row in rows if row["panel"] == "Panel ti" and row["matrix"] == "QQᵀ"]
    assert len(pairs) == np.triu((Q != 0).astype(int) @ (Q != 0).T.astype(int), 1).astype(bool).sum()
    assert any(row["row"] == "features 0–99" for row in rows)


@pytest.mark.browser
def test_the_arrow_keys_read_cells_aloud(open_view):
    page = open_view("?click=1")
    page.locator(".fmviz-matrix-view .figure").first.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    assert page.locator(".fmviz-matrix-view .said").text_content().startswith("feature 1 × feature 2: ")
    assert page.locator(".fmviz-matrix-view .tip.on").is_visible()
    page.keyboard.press("Enter")
    page.get_by_text("picked: (0, 'λ = 0.5', 'gram', 1, 2)").wait_for()


@pytest.mark.browser
@pytest.mark.parametrize("clickable", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_click_reaches_the_script_only_where_it_is_wanted(open_view, wait_idle, clickable):
    page = open_view("?click=1" if clickable else "")
    assert page.get_by_text("picked: None").is_visible()
    canvas = page.locator(".fmviz-matrix-view .gram canvas").nth(1)
    box = canvas.bounding_box()
    canvas.click(position={"x": 7.5 * box["width"] / 24, "y": 3.5 * box["height"] / 24})
    if clickable:
        page.get_by_text("picked: (1, 'λ = 0.5', 'gram', 3, 7)").wait_for()
        page.mouse.move(2, 2)
        page.wait_for_timeout(50)
        assert page.locator(".fmviz-matrix-view .gram .mark").nth(2).is_visible()
    else:
        page.wait_for_timeout(300)
        wait_idle(page)
        assert page.get_by_text("script runs: 1").is_visible()


@pytest.mark.slow
@pytest.mark.browser
def test_no_non_zero_is_lost_where_cells_are_smaller_than_pixels(open_view):
    page = open_view("?d=700&k=4&panels=1")
    slider(page).focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    wait_frame(page, "λ = 1.75")
    factor, gram = (colors_of(x) for x in page.evaluate(READ)["pixels"][:2])
    some = np.abs(np.random.default_rng(3).standard_normal((700, 4))) > 1.6 * 1.75
    pairs = (some.astype(int) @ some.T.astype(int)) > 0
    np.fill_diagonal(pairs, False)
    size = -(-700 // gram.shape[0])
    assert size > 1
    starts = np.arange(0, 700, size)
    pooled_rows = np.logical_or.reduceat(some, starts, axis=0)
    pooled = np.logical_or.reduceat(np.logical_or.reduceat(pairs, starts, axis=0), starts, axis=1)
    zero = bytes_of(palette.LIGHT.zero)
    np.testing.assert_array_equal((factor != zero).any(axis=2), pooled_rows)
    grey = (gram == bytes_of(palette.LIGHT.diagonal)).all(axis=2)
    assert grey.sum() == (700 % size == 1)  # a tile is grey only if it has nothing but a diagonal cell
    np.testing.assert_array_equal((gram != zero).any(axis=2) & ~grey, pooled)


@pytest.mark.slow
@pytest.mark.browser
def test_the_view_finds_a_slider_that_is_built_anew(open_view, wait_idle):
    page = open_view("?toggle=1")
    page.get_by_text("Hide").click()
    page.get_by_text("script runs: 2").wait_for()
    wait_idle(page)
    assert slider(page).count() == 0
    assert page.evaluate(READ)["frame"] == "λ = 0.5"
    page.get_by_text("Hide").click()
    slider(page).wait_for(state="attached")
    wait_idle(page)
    slider(page).focus()
    page.keyboard.press("Home")
    wait_frame(page, "λ = 0")


@pytest.mark.browser
def test_a_saved_page_needs_no_network(new_page, tmp_path):
    frames = [FactorFrame(np.eye(4)[:, :2] + t, f"epoch {t}", f"frame {t}") for t in range(3)]
    chart = {
        "title": "Loss",
        "rows": [{"series": [{"name": "", "color": "#123456", "x": [0, 1, 2], "y": [3, 2, 1]}]}],
    }
    text = report.page("Saved", [], [("", Picture([Panel("A", frames)], list("abcd"), [chart]))])
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    page = new_page(apart=True, offline=True, color_scheme="dark")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((tmp_path / "page.html").as_uri())
    view = page.locator(".fmviz-stage")
    assert view.locator(".caption").text_content() == "frame 2"
    assert view.locator(".fmviz-matrix-view").get_attribute("data-theme") == "dark"
    view.locator("input").focus()
    page.keyboard.press("Home")
    view.get_by_text("frame 0").wait_for()
    assert view.locator(".readout b").text_content() == "3"
    box = view.locator(".gram canvas").bounding_box()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.1 * box["height"])
    assert view.locator(".tip .where").text_content() == "a × b"
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)
