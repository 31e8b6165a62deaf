"""The page Operators."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from streamlit.testing.v1 import AppTest
from ui.driving import address, choose, press, words
from ui.driving import page as opened

from fmviz.lab import operators as lab
from fmviz.ui.widgets import power_label

pytestmark = pytest.mark.faultless


def worked(test: AppTest) -> list[str]:
    """Return the operators whose formula is worked out."""
    return [tab.label for tab in test.tabs]


def test_it_opens_with_four_operators():
    test = opened("prox")
    assert address(test) == {}
    said = words(test)
    study = lab.study(lab.sample(40, 8, "blocks"), lab.VARIANTS["ti"])
    assert f"TI **{study.interactions[study.at(-3)]:,}**" in said
    assert worked(test) == ["ℓ₁", "ℓ₂,₁", "TI", "CS"]


def test_the_strength_changes_counts_and_link():
    test = choose(opened("prox", d="20", k="4", distribution="normal"), prox_log2lambda=1)
    assert address(test) == {"d": "20", "k": "4", "distribution": "normal", "log2lambda": "1"}
    study = lab.study(lab.sample(20, 4), lab.VARIANTS["l1"])
    assert f"{study.entries[study.at(1)]:,} entr" in words(test)


def test_no_operator_is_not_an_error():
    test = opened("prox", regularizers="none")
    assert "Choose at least one operator" in test.info[0].value
    press(test, "prox_default_regularizers")
    assert len(worked(test)) == 4


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", lab.VARIANTS)
def test_every_operator_can_be_shown(name):
    assert len(worked(opened("prox", regularizers=name, d="12", k="3"))) == 1


def test_powers_have_their_degree():
    test = opened("prox", regularizers="ti_power,cs_power,l1", d="12", k="3", degree="4", log2lambda="-1")
    assert test.slider(key="prox_degree").value == 4
    assert any(r"\|p_{:,s}\|_1^{4}" in item.value for item in test.latex)
    assert "degree=4" in test.code[0].value
    assert worked(test) == ["ℓ₁", "TI, order 4", "CS, order 4"]
    choose(test, prox_degree=2)
    assert address(test)["degree"] == "2"
    assert any(r"\|p_{:,s}\|_1^{2}" in item.value for item in test.latex)
    assert not [item for item in opened("prox", regularizers="ti,l1").slider if item.key == "prox_degree"]


@pytest.mark.parametrize(("d", "k"), [(1, 1), (2, 1), (1, 60), (400, 60)])
def test_the_smallest_and_the_largest_matrix(d, k):
    opened("prox", d=str(d), k=str(k), column="60")


@pytest.mark.faultless(False)
def test_pasted_text():
    test = opened("prox", source="pasted")
    assert "Paste a matrix" in test.info[0].value
    press(test, "prox_example")
    choose(test, prox_matrix="1 2\n3 x")
    assert test.error[0].value == "Row 2, column 2: 'x' is not a number. Your text is kept."
    assert test.text_area(key="prox_matrix").value == "1 2\n3 x"
    assert address(test)["matrix"] == "1 2\n3 x"
    choose(test, prox_matrix="1 2\n3 4")
    assert not test.error
    choose(test, prox_source="sampled")
    choose(test, prox_source="pasted")
    assert test.text_area(key="prox_matrix").value == "1 2\n3 4"


def test_pasted_numbers_are_those_that_are_counted():
    test = opened("prox", source="pasted", matrix="3 0\n0 2\n1 1", regularizers="l1", log2lambda="0")
    assert "Remaining interactions, of 2: ℓ₁ **0**." in words(test)


# ------------------------------------------------------------------------------------------- in a browser

# The pictures live in a shadow tree.
CANVASES = """() => [...document.querySelectorAll('.st-key-prox_view *')].flatMap(
  (e) => (e.shadowRoot ? [...e.shadowRoot.querySelectorAll('.picture:not(.rows) canvas')] : []))"""
PAINTED = """() => {
  const views = (CANVASES)();
  return views.length === 8 && views.every((c) => {
    const data = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
    return data.some((x) => x !== 0);
  });
}""".replace("CANVASES", CANVASES)


def open_prox(page, url: str) -> None:
    page.goto(url)
    page.wait_for_function(PAINTED)


PRESS = """async () => {
  const box = document.querySelector('.st-key-prox_log2lambda');
  const thumb = box.querySelector('input[type=range], [role=slider]');
  const canvas = (CANVASES)()[5];
  const look = () => canvas.toDataURL();
  const before = look();
  window.__changed = new Promise((done) => {
    const start = performance.now();
    const tick = () => (look() !== before ? done(performance.now() - start) : requestAnimationFrame(tick));
    thumb.addEventListener('keydown', () => requestAnimationFrame(tick), { once: true, capture: true });
  });
  thumb.focus();
}""".replace("CANVASES", CANVASES)


@pytest.mark.slow
@pytest.mark.browser
def test_one_arrow_key_updates_the_pictures_and_then_the_link(page, server, wait_idle):
    open_prox(page, f"{server.url}/prox")
    wait_idle(page)
    slider = page.get_by_role("slider", name="Strength λ")
    for e in (-2, -1, 0):
        page.evaluate(PRESS)
        page.keyboard.press("ArrowRight")
        page.evaluate("window.__changed")
        expect(slider).to_have_attribute("aria-valuetext", power_label(e))
    page.wait_for_url("**/prox?level=simple&log2lambda=0")
    study = lab.study(lab.sample(40, 8, "blocks"), lab.VARIANTS["ti"])
    page.get_by_text(f"TI {study.interactions[study.at(0)]:,}").wait_for()
