"""The page Geometry."""

from __future__ import annotations

import numpy as np
import pytest
from programs import printed
from ui.driving import address, choose, words
from ui.driving import page as open_page

from fmviz.lab.operators import geometry as lab

pytestmark = pytest.mark.faultless


def test_it_opens_on_a_column_of_two(store):
    app = open_page("geometry")
    assert address(app) == {}
    said = words(app)
    q = lab.prox_of(lab.PLANES["column"], "ti", np.array([[1.5, 0.6]]), 0.4)[0]
    assert f"(1.5, 0.6) → **({q[0]:.3g}, 0)**" in said
    assert [s.key for s in app.slider if s.key.startswith("geometry_")] == [
        "geometry_strength",
        "geometry_a",
        "geometry_b",
        "geometry_tau",
    ]


@pytest.mark.parametrize(("dims", "place"), [("2", "row"), ("2", "diagonal"), ("3", "corner"), ("3", "row")])
def test_every_section_is_drawn_and_linked(store, dims, place):
    query = {"dims": dims} | ({"plane": place} if dims == "2" else {"solid": place})
    app = open_page("geometry", **query, a="-0.85", strength="1.2", penalties="ti,cs")
    section = (lab.PLANES if dims == "2" else lab.SOLIDS)[place]
    assert section.words in words(app)
    assert all(rf"$\Omega={section.formulas[name]}$" in words(app) for name in ("ti", "cs"))
    default = {"dims": "2", "plane": "column", "solid": "corner"}
    shown = {name: value for name, value in query.items() if default[name] != value}
    assert address(app) == shown | {"a": "-0.85", "strength": "1.2", "penalties": "ti,cs"}


def test_a_moved_point_changes_numbers_link_and_program(store):
    app = choose(open_page("geometry"), geometry_a=0.7, geometry_strength=0.1)
    assert address(app) == {"a": "0.7", "strength": "0.1"}
    source = next(block.value for block in app.code if "fmviz.prox" in block.value)
    q = lab.prox_of(lab.PLANES["column"], "ti", np.array([[0.7, 0.6]]), 0.1)[0]
    line = next(line for line in printed(source) if line.startswith("ti "))
    assert line.startswith(f"ti {[[float(q[0])], [float(q[1])]]}")
    assert f"**({q[0]:.3g}, {q[1]:.3g})**" in words(app)


@pytest.mark.parametrize(
    "query", [{"level": "simple"}, {"hide": "panels,entry,back,e3,flow"}, {"hide": "column,shrinkage,a,dims"}]
)
def test_what_is_left_out_leaves_the_rest(store, query):
    app = open_page("geometry", **query)
    assert not app.warning
    assert app.slider(key="geometry_strength").value == 0.4


def test_no_penalty_is_a_sentence(store):
    app = open_page("geometry", penalties="none")
    assert "No regularizer is chosen" in app.info[0].value


def test_the_column_tells_what_stays(store):
    app = open_page("geometry", tau="0.25")
    story = lab.column_story([1.6, 1.1, 0.8, 0.5, 0.3, 0.15], 0.25)
    assert f"**{story.kept} of 6** entries" in words(app)
    app.number_input(key="geometry_e6").set_value(9.0).run()
    assert f"**{lab.column_story([1.6, 1.1, 0.8, 0.5, 0.3, 9.0], 0.25).kept} of 6**" in words(app)
    assert address(app) == {"tau": "0.25", "e6": "9.0"}


# ------------------------------------------------------------------------------------------- in a browser


@pytest.mark.slow
@pytest.mark.browser
def test_a_click_and_a_key_move_the_point(page, server, wait_idle, shoot):
    page.goto(f"{server.url}/geometry")
    plane = page.locator(".st-key-geometry_ti .nsewdrag").first
    plane.wait_for()
    wait_idle(page)
    shoot(page, "geometry-1440-light")
    box = plane.bounding_box()
    # The middle is the origin, and 2.12 reaches the edge.
    page.mouse.click(
        box["x"] + box["width"] * (0.5 + 1.0 / 4.24), box["y"] + box["height"] * (0.5 + 0.5 / 4.24)
    )
    page.wait_for_url("**/geometry?level=simple&a=1.0&b=-0.5")
    q = lab.prox_of(lab.PLANES["column"], "ti", np.array([[1.0, -0.5]]), 0.4)[0]
    text = "(1, −0.5) → (" + ", ".join("0" if x == 0 else f"{x:.3g}".replace("-", "−") for x in q) + ")"
    page.locator(".st-key-geometry_panel_ti").get_by_text(text).wait_for()
    wait_idle(page)
    page.locator(".st-key-geometry_a").locator("[role=slider], input[type=range]").first.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**/geometry?level=simple&a=1.05&b=-0.5")
    wait_idle(page)
    page.get_by_text("Three (3-D)").click()
    page.wait_for_url("**dims=3**")
    page.wait_for_function(
        "() => document.querySelector('.st-key-geometry_ti .js-plotly-plot')?.layout?.scene !== undefined"
    )
    wait_idle(page)
    shoot(page, "geometry-3d")
