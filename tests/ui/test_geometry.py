"""The page Geometry."""

from __future__ import annotations

import numpy as np
import pytest
from programs import printed
from ui.driving import address, choose, words
from ui.driving import page as open_page

from fmviz.lab.operators import geometry as lab

pytestmark = pytest.mark.faultless

POINT = np.array([[1.5, 0.6]])


def test_it_opens_where_ti_and_cs_differ(store):
    app = open_page("geometry")
    assert address(app) == {}
    said = words(app)
    ti, cs = (lab.prox_of(lab.PLANES["diagonal"], name, POINT, 0.4)[0] for name in ("ti", "cs"))
    assert f"(1.5, 0.6) → **({cs[0]:.3g}, 0)**" in said
    assert f"**TI** → ({ti[0]:.3g}, {ti[1]:.3g})" in said
    assert "**b** under CS" in said
    assert [s.key for s in app.slider if s.key.startswith("geometry_")] == [
        "geometry_strength",
        "geometry_a",
        "geometry_b",
        "geometry_tau",
    ]


@pytest.mark.parametrize("place", ["row", "column"])
def test_every_section_is_drawn_and_linked(store, place):
    query = {"plane": place, "a": "-0.85", "strength": "1.2", "penalties": "l1,cs", "large": "l1"}
    app = open_page("geometry", **query)
    assert lab.PLANES[place].words in words(app)
    assert rf"$\Omega={lab.PLANES[place].formulas['l1']}$" in words(app)
    assert address(app) == query


def test_a_link_with_unknown_settings_opens_with_a_sentence(store):
    app = open_page("geometry", dims="3", strength="1.2")
    assert "'dims', which does not exist on this page; it was ignored" in app.warning[0].value
    assert address(app) == {"strength": "1.2"}


def test_a_moved_point_changes_numbers_link_and_program(store):
    app = choose(open_page("geometry", plane="column", large="ti"), geometry_a=0.7, geometry_strength=0.1)
    assert address(app) == {"plane": "column", "large": "ti", "a": "0.7", "strength": "0.1"}
    source = next(block.value for block in app.code if "fmviz.prox" in block.value)
    q = lab.prox_of(lab.PLANES["column"], "ti", np.array([[0.7, 0.6]]), 0.1)[0]
    line = next(line for line in printed(source) if line.startswith("ti "))
    assert line.startswith(f"ti {[[float(q[0])], [float(q[1])]]}")
    assert f"**({q[0]:.3g}, {q[1]:.3g})**" in words(app)
    choose(app, geometry_penalties=["l1", "cs"])
    assert address(app)["large"] == "l1", "what is not chosen is not large"
    choose(app, geometry_penalties=[])
    assert "Choose at least one regularizer" in app.info[0].value


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ({"hide": "panels,e3"}, "geometry_tau"),
        ({"hide": "column,a"}, "geometry_strength"),
    ],
)
def test_what_is_left_out_leaves_the_rest(store, query, key):
    app = open_page("geometry", **query)
    assert not app.warning
    assert [slider.key for slider in app.slider if slider.key in (key, "geometry_a")] == [key]


def test_the_column_tells_what_stays(store):
    app = open_page("geometry", tau="0.25")
    assert f"**{lab.column_story([1.6, 1.1, 0.8, 0.5, 0.3, 0.15], 0.25).kept} of 6** entries" in words(app)
    app.number_input(key="geometry_e6").set_value(9.0).run()
    assert f"**{lab.column_story([1.6, 1.1, 0.8, 0.5, 0.3, 9.0], 0.25).kept} of 6**" in words(app)
    assert address(app) == {"tau": "0.25", "e6": "9.0"}


# ------------------------------------------------------------------------------------------- in a browser


@pytest.mark.slow
@pytest.mark.browser
def test_a_click_and_a_key_move_the_point(page, server, wait_idle, shoot):
    page.goto(f"{server.url}/geometry?plane=column&large=ti")
    plane = page.locator(".st-key-geometry_ti .nsewdrag").first
    plane.wait_for()
    wait_idle(page)
    shoot(page, "geometry-1440-light")
    box = plane.bounding_box()
    # The middle is the origin, and 2.12 reaches the edge.
    page.mouse.click(
        box["x"] + box["width"] * (0.5 + 1.0 / 4.24), box["y"] + box["height"] * (0.5 + 0.5 / 4.24)
    )
    page.wait_for_url("**/geometry?level=simple&plane=column&a=1.0&b=-0.5&large=ti")
    q = lab.prox_of(lab.PLANES["column"], "ti", np.array([[1.0, -0.5]]), 0.4)[0]
    text = "(1, −0.5) → (" + ", ".join("0" if x == 0 else f"{x:.3g}".replace("-", "−") for x in q) + ")"
    page.locator(".st-key-geometry_panel_ti").get_by_text(text).wait_for()
    wait_idle(page)
    page.locator(".st-key-geometry_a").locator("[role=slider], input[type=range]").first.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**/geometry?level=simple&plane=column&a=1.05&b=-0.5&large=ti")
    wait_idle(page)
