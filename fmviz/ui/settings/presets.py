"""Presets: example states of the pages, each with a title and a sentence.

Each preset appears in the popover *Presets* of its page and, if it is a card, on the start page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from fmviz.lab.catalog import dataset_spec
from fmviz.lab.values import to_query
from fmviz.ui import navigation
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings


@dataclass(frozen=True)
class Preset:
    """An example state of a page.

    Attributes
    ----------
    title, text, icon : str
        Contents of the card.
    target : navigation.Link
        The page.
    query : mapping of str
        Settings of the page, as in the query string.
    card : bool
        Whether the start page shows the preset.
    missing : str, optional
        Why the preset cannot be opened here.
    """

    title: str
    text: str
    icon: str
    target: navigation.Link
    query: Mapping[str, str]
    card: bool = False
    missing: str | None = None


def _training(dataset: str, title: str, text: str, icon: str, card: bool = False, **changes: str) -> Preset:
    spec = dataset_spec(dataset)
    settings = to_query({"dataset": dataset, "seed": 0, **spec.suggested, **changes, "play": True})
    return Preset(title, text, icon, navigation.TRAIN, settings, card, spec.unavailable())


def presets() -> list[Preset]:
    """Return all presets of all pages."""
    planted = {"dataset": "planted_interactions", "lambda_p": "0.1", "low": "0.01", "high": "10.0"}
    return [
        Preset(
            "ℓ₁: from all to nothing",
            "A random matrix at λ = 1: ℓ₁ keeps nearly every interaction, TI a few. Press → twice: ℓ₁ keeps "
            "none, TI some.",
            ":material/contrast:",
            navigation.PROX,
            {
                "regularizers": "l1,ti",
                "log2lambda": "0",
            },
            card=True,
        ),
        Preset(
            "TI keeps interactions sparse",
            "TI removes interactions over a wide range of λ, features much later. Both definitions, side by "
            "side.",
            ":material/grain:",
            navigation.PROX,
            {
                "regularizers": "ti,ti_rows",
                "log2lambda": "-3",
            },
            card=True,
        ),
        Preset(
            "CS drops features",
            "CS zeroes whole rows, the weakest first. Here each feature is slightly weaker than the one "
            "before.",
            ":material/table_rows:",
            navigation.PROX,
            {
                "regularizers": "l21,cs",
                "distribution": "rows",
                "log2lambda": "-4",
            },
            card=True,
        ),
        Preset(
            "Two groups",
            "Two groups of features, strong in different columns. TI separates the groups first.",
            ":material/view_module:",
            navigation.PROX,
            {
                "regularizers": "l1,l21,ti,cs",
                "distribution": "blocks",
                "d": "40",
                "k": "8",
                "log2lambda": "-3",
            },
        ),
        Preset(
            "A matrix by hand",
            "Four rows and two columns, with all numbers at the foot of the page.",
            ":material/edit_note:",
            navigation.PROX,
            {
                "source": "pasted",
                "matrix": "3.0  0.5\n-2.0 1.0\n0.5  -0.2\n0.1  2.5",
                "regularizers": "l1,ti",
                "log2lambda": "-2",
            },
        ),
        Preset(
            "Small next to large",
            "Two entries of a column: TI zeroes the smaller one, ℓ₁ keeps both.",
            ":material/compare_arrows:",
            navigation.GEOMETRY,
            {
                "penalties": "l1,ti",
                "strength": "0.35",
            },
        ),
        Preset(
            "A single feature",
            "Two entries of one row: no interaction, and TI and CS reduce to ridge.",
            ":material/radio_button_unchecked:",
            navigation.GEOMETRY,
            {
                "plane": "row",
            },
        ),
        _training(
            "planted_interactions",
            "Recover planted interactions",
            "Features interact within eight groups of ten, known by construction. Does TI recover them?",
            ":material/psychology_alt:",
            card=True,
        ),
        _training(
            "monks1",
            "MONK's-1: find a₁ = a₂",
            "The label is 1 if two attributes are equal or a third is 1. Equality is a pure interaction.",
            ":material/extension:",
            card=True,
        ),
        _training(
            "bike",
            "Bike sharing: when do people ride?",
            "A year of hourly rentals in Washington. Hour and weekday together predict what neither does "
            "alone.",
            ":material/pedal_bike:",
            card=True,
        ),
        _training(
            "planted_features",
            "Recover planted features",
            "All pairs of twenty features interact; eighty more are noise. CS selects whole features.",
            ":material/table_rows:",
        ),
        _training(
            "planted_interactions",
            "The same without sparsity",
            "Ridge on the planted groups: the training error vanishes, and every pair is used.",
            ":material/blur_on:",
            regularizer="l2",
            validation="0.25",
        ),
        _training(
            "planted_interactions",
            "Too much regularization",
            "At λ = 10 a small random start collapses to P = 0, where the gradient vanishes.",
            ":material/vertical_align_bottom:",
            lambda_sparse="10",
        ),
        Preset(
            "How wide is the right range?",
            "The λ at which four regularizers recover the planted pairs, as in Fig. 4 of the paper.",
            ":material/show_chart:",
            navigation.PATH,
            {**planted, "points": "10", "metric": "support_f1", "run": "1"},
        ),
        Preset(
            "Four regularizers, six strengths",
            "Error and used interactions against λ on MONK's-1, three seeds each.",
            ":material/show_chart:",
            navigation.SWEEPS,
            {
                "dataset": "monks1",
                "penalties": "l1,l21,ti,cs",
                "low": "0.0001",
                "high": "0.01",
                "points": "6",
                "seeds": "3",
            },
        ),
        Preset(
            "TI or CS, on planted groups",
            "Two regularizers from weak to strong, with known true interactions.",
            ":material/balance:",
            navigation.SWEEPS,
            {
                "dataset": "planted_interactions",
                "penalties": "ti,cs",
                "low": "0.01",
                "high": "10.0",
                "points": "7",
                "seeds": "2",
            },
        ),
        Preset(
            "360 interactions each",
            "The planted number. Which regularizer selects the true pairs?",
            ":material/swords:",
            navigation.COMPARE,
            {
                "dataset": "planted_interactions",
                "fighters": "l1,l21,ti,cs",
                "target": "360",
                "seeds": "3",
            },
        ),
        Preset(
            "190 interactions each",
            "All pairs of twenty planted features: the case CS is designed for.",
            ":material/table_rows:",
            navigation.COMPARE,
            {
                "dataset": "planted_features",
                "fighters": "l1,l21,ti,cs",
                "target": "190",
            },
        ),
        Preset(
            "Three interactions each",
            "MONK's-1 depends on three pairs. Which regularizer classifies best with about three?",
            ":material/extension:",
            navigation.COMPARE,
            {"dataset": "monks1", "fighters": "l1,ti,cs", "target": "3"},
        ),
    ]


def menu(settings: Settings, script: str) -> None:
    """Draw the popover of a page's presets, if it has any."""
    offered = [item for item in presets() if item.target.script == script]
    if not offered:
        return
    with st.popover("Presets", icon=":material/bookmarks:", key=f"{settings.page}_presets"):
        for number, chosen in enumerate(offered):
            st.button(
                plain(chosen.title),
                icon=chosen.icon,
                key=f"{settings.page}_preset_{number}",
                disabled=chosen.missing is not None,
                width="stretch",
                on_click=Settings.move,
                args=(chosen.query,),
            )
            st.caption(chosen.missing or chosen.text)
