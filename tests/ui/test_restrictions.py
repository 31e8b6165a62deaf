"""Controls that a link hides or locks, the menu that makes such links, and Simple beside Expert."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import pytest
from streamlit.testing.v1 import AppTest
from ui.driving import ROOT, address, choose, elements_of, page, press, written

from fmviz.engine.settings import ParamSpec
from fmviz.ui.settings.state import Settings


def keys(app: AppTest) -> set[str]:
    controls = (item for item in elements_of(app._tree) if not hasattr(item, "children"))
    return {key for item in controls if (key := getattr(item, "key", None))}


def level(app: AppTest) -> str:
    return written(app)["level"]


def test_hidden_controls_are_not_drawn_and_keep_their_values(store):
    app = page("train", rank="7", hide="rank,solver,dataset,play", lock="regularizer,seed,step")
    assert not app.warning
    drawn = keys(app)
    assert not drawn & {"train_rank", "train_solver", "shared_dataset", "train_play"}
    assert {"train_regularizer", "shared_seed", "train_step", "train_model", "train_reseed"} <= drawn
    assert app.selectbox(key="train_regularizer").disabled
    assert app.number_input(key="shared_seed").disabled
    assert "Locked" in app.selectbox(key="train_regularizer").help
    assert app.button(key="train_step").disabled
    assert not app.selectbox(key="train_loss").disabled
    assert address(app)["hide"] == "rank,solver,dataset,play"
    # A change of something else keeps all that, in the address and on the page.
    choose(app, train_max_epochs=3)
    assert address(app)["hide"] == "rank,solver,dataset,play"
    assert address(app)["rank"] == "7"
    assert not keys(app) & {"train_rank", "train_solver"}


def test_what_a_page_does_not_have_is_told():
    app = page("prox", hide="d,colour", lock="flavour")
    (notice,) = app.warning
    assert "hide 'colour'" in notice.value
    assert "lock 'flavour'" in notice.value
    assert "prox_d" not in keys(app)


def test_a_teacher_hides_locks_copies_and_goes_back():
    app = page("prox", k="8")
    offered = app.multiselect(key="prox_hide").options
    assert {"Strength λ", "Features d", "Rank k", "Operators", "Seed"} <= set(offered)
    assert "Data set" not in offered, "nothing reads it here"
    assert not app.multiselect(key="prox_hide").proto.select_all, "Enter takes one"
    choose(app, prox_hide=["k", "distribution"], prox_lock=["log2lambda"])
    assert address(app) == {"hide": "k,distribution", "lock": "log2lambda"}
    assert app.select_slider(key="prox_log2lambda").disabled
    assert not keys(app) & {"prox_k", "prox_distribution"}
    (code,) = [block.value for block in app.sidebar.code]
    assert code.endswith("?level=expert&hide=k,distribution&lock=log2lambda")
    # What is hidden is still offered, by the words that it had.
    assert "Rank k" in app.multiselect(key="prox_hide").options
    press(app, "prox_teach_end")
    assert address(app) == {}
    assert "prox_k" in keys(app)


def test_a_page_cannot_take_a_name_of_all_pages():
    with pytest.raises(ValueError, match="'lock'"):
        Settings("some", (ParamSpec("lock", "bool", False),))


@pytest.mark.parametrize(
    ("call", "places"),
    [
        # Only what goes through fmviz.ui.widgets.control (param, scale, several …) can be hidden and locked.
        (r"(\*\*|= )settings\.bind\(", {"widgets.py", "shell.py"}),
        # Only what goes through fmviz.ui.navigation.page_link names the level.
        (r"st\.page_link\(", {"navigation.py"}),
        # Only what goes through fmviz.ui.charts.chart can be downloaded.
        (r"plotly_chart\(", {"charts.py"}),
    ],
)
def test_what_pages_share_is_drawn_in_one_place(call, places):
    files = (ROOT / "fmviz" / "ui").rglob("*.py")
    assert {path.name for path in files if re.search(call, path.read_text(encoding="utf-8"))} == places


# ------------------------------------------------------------------------------------------ Simple and Expert


@pytest.mark.simple
def test_simple_leaves_out_what_is_expert_and_keeps_its_values(store):
    app = page("train", level="simple", max_epochs="7", rank="5", lambda_sparse="2.0")
    drawn = keys(app)
    assert {"train_rank", "train_regularizer", "train_lambda_sparse", "train_play", "shared_seed"} <= drawn
    assert not drawn & {"train_solver", "train_max_epochs", "train_tol", "train_model", "train_step"}
    boxes = [box for box in elements_of(app._tree) if box.type == "flex_container"]
    assert all(box.children for box in boxes if box.proto.flex_container.border)
    press(app, "train_play")
    assert store.runs()[0].settings["max_epochs"] == 7
    choose(app, shared_level="expert")
    assert app.number_input(key="train_max_epochs").value == 7
    assert level(app) == "expert"


@pytest.mark.simple
def test_who_comes_first_meets_few_pages_and_four_regularizers():
    app = page("prox", k="8")
    labels = [link.proto.label for link in app.sidebar.get("page_link")]
    assert labels[:7] == ["Start", "Lessons", "Operators", "Train", "Compare", "Your data", "Interactions"]
    (folded,) = [item for item in app.sidebar.get("expander") if item.proto.label == "Research"]
    assert len(folded.get("page_link")) == len(labels) - 7
    pills = app.get("button_group")[0]
    offered = [option.content for option in pills.proto.options]
    assert offered[-1] == "More …"
    assert len(offered) == 5
    # More is no choice: it shows all others, and changes nothing.
    pills.set_value([*pills.value, "more"]).run()
    pills = app.get("button_group")[0]
    assert len(pills.proto.options) > 5
    assert len(pills.value) == 4
    assert address(app) == {}


@pytest.mark.simple
def test_a_lesson_and_a_link_within_the_pages_say_themselves_what_is_drawn():
    assert "prox_source" in keys(page("prox", lesson="ti", d="30"))
    app = page("prox")
    app.query_params.clear()
    app.query_params["source"] = "pasted"
    app.run()
    assert "prox_source" not in keys(app)
    assert address(app) == {"source": "pasted"}


def test_a_link_without_a_level_leaves_that_of_the_session():
    for chosen in ("simple", "expert"):
        app = page("prox", level=chosen)
        app.query_params.clear()
        app.query_params["d"] = "30"
        app.run()
        assert (level(app), address(app)) == (chosen, {"d": "30"})


@pytest.mark.simple
@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("name", "button", "query"),
    [
        ("train", "train_play", {"dataset": "balance_scale"}),
        ("sweeps", "", {"points": "2"}),
        ("path", "", {}),
        ("compare", "", {}),
    ],
)
def test_who_opens_a_link_sees_the_level_of_its_sender(store, name, button, query):
    for chosen in ("simple", "expert"):
        sender = page(name, level=chosen)
        # As whoever edits the address does.
        for setting, value in {**written(sender), **query}.items():
            sender.query_params[setting] = value
        sender.run()
        if button:
            press(sender, button)
        taught = dict(parse_qsl(urlsplit(sender.sidebar.code[-1].value).query))
        assert taught == {**address(sender), "level": chosen}
        offered = sender.sidebar.get("page_link")
        assert all(f"level={chosen}" in link.proto.query_string for link in offered)
        reader = page(name, **taught)
        assert level(reader) == chosen
        assert len(reader.sidebar.get("page_link")) == len(offered)
        # What goes on has sliders for now.
        assert keys(reader) == {key.replace("_now_", "_") for key in keys(sender)}


@pytest.mark.simple
def test_the_sidebar_leads_to_pages_as_they_were_left():
    app = page("prox", d="30")
    app.switch_page("app.py").run()
    app.switch_page("pages/prox.py")
    app.query_params["level"] = "expert"
    app.run()
    assert (level(app), address(app)) == ("expert", {"d": "30"})
    assert app.slider(key="prox_d").value == 30
