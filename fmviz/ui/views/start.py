"""The start page: what this is, a picture to play with, and links into telling states of the other pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from fmviz.engine.params import ParamSpec
from fmviz.lab import operators as lab
from fmviz.lab.datasets import DATASETS
from fmviz.ui import shell, widgets
from fmviz.ui.components.matrix_view import matrix_view
from fmviz.ui.state import Settings
from fmviz.ui.views import prox

TABLE = (
    ParamSpec(
        "log2lambda",
        "int",
        -3,
        lab.EXPONENTS[0],
        lab.EXPONENTS[-1],
        help="Drag the handle, or click it and press the arrow keys: the pictures follow.",
    ),
)
_SHOWN = ("l1", "l21", "ti", "cs")
_DRAWN = (40, 8, "blocks", 1)


@dataclass(frozen=True)
class Preset:
    """A card that opens another page in a telling state.

    Attributes
    ----------
    title, text, icon : str
        What the card says.
    action : str
        The words of its link.
    target : shell.Link
        The page.
    query : dict of str
        Its settings, as the query string spells them.
    missing : str, optional
        Why it cannot be opened here.
    """

    title: str
    text: str
    icon: str
    action: str
    target: shell.Link
    query: dict[str, str]
    missing: str | None = None


def operator_presets() -> list[Preset]:
    """Return the cards that open the page of the operators."""
    settings = Settings("prox", prox.TABLE)

    def card(title: str, text: str, icon: str, **changes: Any) -> Preset:
        return Preset(title, text, icon, "See it", shell.PROX, settings.link(**changes))

    return [
        card(
            "ℓ₁: all or nothing",
            "At λ = 1, ℓ₁ still uses nearly every interaction and TI a few. Press → twice: ℓ₁ has none left.",
            ":material/contrast:",
            regularizers=("l1", "ti"),
            log2lambda=0,
        ),
        card(
            "TI keeps interactions sparse",
            "TI thins out the interactions over many λ, features much later. Its two readings, side by side.",
            ":material/grain:",
            regularizers=("ti", "ti_rows"),
            log2lambda=-3,
            y="log",
        ),
        card(
            "CS drops features",
            "Whole rows go, the weakest first. Here every feature is a little weaker than the one before.",
            ":material/table_rows:",
            regularizers=("l21", "cs"),
            distribution="rows",
            log2lambda=-4,
        ),
    ]


def training_presets() -> list[Preset]:
    """Return the cards that open the training page and start a run."""

    def card(dataset: str, title: str, text: str, icon: str) -> Preset:
        spec = DATASETS[dataset]
        query = {"dataset": dataset, "seed": "0"}
        for name, value in spec.suggested.items():
            query[name] = str(int(value)) if isinstance(value, bool) else str(value)
        query["play"] = "1"
        return Preset(title, text, icon, "Train it", shell.TRAIN, query, spec.unavailable())

    return [
        card(
            "planted_interactions",
            "Recover planted interactions",
            "Eight groups of ten features interact, and we know: we planted them. Does TI find them?",
            ":material/psychology_alt:",
        ),
        card(
            "monks1",
            "MONK's-1: find a₁ = a₂",
            "The label is 1 if two attributes agree or a third is 1. The agreement is pure interaction.",
            ":material/extension:",
        ),
        card(
            "flights",
            "Flights: who is late?",
            "20,000 departures from New York, known by their timetable. Which pairs of facts predict delay?",
            ":material/flight_takeoff:",
        ),
    ]


def render() -> None:
    """Draw the page."""
    with shell.page("Start", Settings("start", TABLE)) as settings:
        _hero(settings)
        st.subheader("See what an operator does")
        _cards(operator_presets(), "operators")
        st.subheader("Watch a model learn")
        _cards(training_presets(), "training")
        _tour()


def _hero(settings: Settings) -> None:
    st.title("Which interactions matter?")
    st.markdown(
        "A **factorization machine** predicts from pairs of features: the weight of a pair is one cell "
        "of **PPᵀ**. A **regularizer** sets weights to exactly zero, so that few pairs, or few features, "
        "are left to read. **fmviz** shows how each regularizer does that, trains the model before your "
        "eyes, and puts a certificate beside every result."
    )
    with st.container(horizontal=True):
        if st.button("Explore the operators", type="primary", icon=shell.PROX.icon, key="start_to_prox"):
            st.switch_page(shell.PROX.script)
        if st.button("Train a model", icon=shell.TRAIN.icon, key="start_to_train"):
            st.switch_page(shell.TRAIN.script)
    with st.container(border=True):
        _playground(settings)


@shell.fragment
def _playground(settings: Settings) -> None:
    P = lab.sample(*_DRAWN)
    words, slider = st.columns([2, 3], vertical_alignment="center", gap="medium")
    words.markdown(
        "**Try it.** Two groups of 20 features under four regularizers. Raise λ: who finds the groups?"
    )
    with slider:
        widgets.power_of_two(settings, "log2lambda", "Strength λ")
    driver = settings.key("log2lambda") if settings.shows("log2lambda") else settings["log2lambda"]
    payload = prox.pictures(("start", *_DRAWN), _SHOWN, driver, P, columns=4, show="gram", max_height=240)
    matrix_view(payload, key="start_view")


def _cards(presets: list[Preset], group: str) -> None:
    for number, (column, preset) in enumerate(zip(st.columns(len(presets)), presets, strict=True)):
        with column.container(border=True, height="stretch", key=f"start_{group}_{number}"):
            st.markdown(f"#### :primary[{preset.icon}] {preset.title}")
            st.markdown(preset.text)
            if preset.missing is None:
                st.page_link(
                    preset.target.script,
                    label=f"**{preset.action}**",
                    icon=":material/arrow_forward:",
                    icon_position="right",
                    query_params=preset.query,
                )
            else:
                st.caption(f":material/folder_off: {preset.missing}")


def _tour() -> None:
    st.subheader("In sixty seconds")
    steps = (
        ("Pick a regularizer", "On *Proximal operators*. Each has a colour that it keeps everywhere."),
        ("Turn λ", "Grey is exactly zero, blue negative, orange positive. The curves count what is left."),
        ("Train", "Choose data in the sidebar, press Play, watch objective, features and interactions."),
        ("Share", "The address bar holds all settings and the seed: copy it, and others see the same."),
    )
    for number, (column, (title, text)) in enumerate(zip(st.columns(4), steps, strict=True), start=1):
        with column:
            st.markdown(f"**:primary[{number}]&ensp;{title}**")
            st.caption(text)
