"""The settings of the page of operators, and the controls of its matrix P."""

from __future__ import annotations

import numpy as np
import streamlit as st

from fmviz.engine.settings import ParamSpec
from fmviz.lab import operators as lab
from fmviz.ui import shell, widgets
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings, Several, Text

TABLE = (
    Several(
        "regularizers",
        ("l1", "l21", "ti", "cs"),
        tuple(lab.VARIANTS),
        "Which operators to apply to the same P. TI has two readings: squared norms of the columns, as it is "
        "defined, or of the rows.",
    ),
    ParamSpec(
        "source",
        "choice",
        "sampled",
        choices=("sampled", "pasted"),
        help="Draw P at random, or paste a matrix of your own.",
    ),
    ParamSpec(
        "distribution",
        "choice",
        "normal",
        choices=tuple(lab.DISTRIBUTIONS),
        help="How the entries of P are drawn. The seed is in the sidebar.",
    ),
    ParamSpec(
        "d",
        "int",
        200,
        1,
        lab.MAX_FEATURES,
        symbol="d",
        help=r"How many features: rows of $P\in\mathbb{R}^{d\times k}$.",
    ),
    ParamSpec(
        "k",
        "int",
        30,
        1,
        lab.MAX_RANK,
        symbol="k",
        help=r"The rank: columns of $P\in\mathbb{R}^{d\times k}$.",
    ),
    Text(
        "matrix",
        help="A line a row; entries apart by commas, semicolons, tabs or blanks. What Python prints works.",
    ),
    ParamSpec(
        "log2lambda",
        "int",
        -3,
        lab.EXPONENTS[0],
        lab.EXPONENTS[-1],
        symbol=r"\lambda",
        help=r"λ in $\arg\min_Q\frac12\|Q-P\|_F^2+\lambda\,\Omega(Q)$. Drag, or click the handle and use the "
        "arrow keys. The pictures follow while you drag.",
    ),
    ParamSpec(
        "degree",
        "int",
        3,
        2,
        10,
        symbol="m",
        help="The power in TI and CS of order m: the order of the interactions that they are made for. m = 2 "
        "gives TI and CS themselves.",
    ),
    ParamSpec(
        "size",
        "choice",
        "row",
        choices=("row", "large"),
        help="All pictures in one row under the slider, or larger ones, two in a row.",
    ),
    ParamSpec(
        "column",
        "int",
        0,
        0,
        lab.MAX_RANK - 1,
        symbol="s",
        help="The column of P whose numbers are worked out, counted from 0 as in Python.",
    ),
    ParamSpec(
        "y",
        "choice",
        "linear",
        choices=("linear", "log"),
        help="The scale of the counts. The logarithmic one shows what is left where little is.",
    ),
)
PARTS = ("verdicts", "curves", "worked", "paper", "exports")
EXPERT = ("source", "column", "size", "y", "paper")
EXAMPLE = "3.0  0.5\n-2.0 1.0\n0.5  -0.2\n0.1  2.5\n"


def draw_matrix(settings: Settings) -> tuple[tuple[object, ...], np.ndarray | None]:
    """Draw the controls of P; return a name of its contents for the caches, and P, or None."""
    pasted = settings["source"] == "pasted"
    asked = ("matrix",) if pasted else ("distribution", "d", "k")
    label = lab.DISTRIBUTIONS[settings["distribution"]].label
    said = f"The matrix P: {label}, {settings['d']:,} × {settings['k']:,}"
    shown = settings.shows_any("source", *asked)
    # What is drawn at random needs no decision: the pictures come first.
    folded = shown and not pasted and not settings["lesson"]
    with shell.settings_box("prox_source_box", said, folded=folded, border=shown):
        widths = [3] if pasted else [1.2, 1, 1]
        if settings.shows("source"):
            left, *rest = st.columns([1.1, *widths], vertical_alignment="top")
            with left:
                words = {"sampled": "Drawn", "pasted": "Pasted"}
                widgets.param(settings, "source", "The matrix P", labels=words)
        else:
            rest = st.columns(widths, vertical_alignment="top")
        if pasted:
            with rest[0]:
                return _pasted(settings)
        with rest[0]:
            words = {name: one.label for name, one in lab.DISTRIBUTIONS.items()}
            chosen = lab.DISTRIBUTIONS[settings["distribution"]]
            widgets.param(settings, "distribution", labels=words, style="select", help=chosen.help)
        with rest[1]:
            widgets.param(settings, "d", "Features d", style="slider")
        with rest[2]:
            widgets.param(settings, "k", "Rank k", style="slider")
    drawn = (settings["d"], settings["k"], settings["distribution"], settings["seed"])
    return drawn, lab.sample(*drawn)


def _pasted(settings: Settings) -> tuple[tuple[object, ...], np.ndarray | None]:
    widgets.control(settings, "matrix", st.text_area, "Matrix", height=150, placeholder=EXAMPLE)
    text = settings["matrix"]
    if not text.strip():
        st.info("Paste a matrix, one row a line, and press Ctrl+Enter.", icon=":material/content_paste:")
        st.button(
            "Use the example",
            key="prox_example",
            on_click=lambda: settings.set(matrix=EXAMPLE, log2lambda=-2),
        )
        return (), None
    try:
        P = lab.parse_matrix(text)
    except ValueError as error:
        st.error(f"{plain(error)} Your text is kept.", icon=":material/edit_note:")
        return (), None
    if settings.shows("matrix"):
        d, k = P.shape
        size = f"{d:,} {'row' if d == 1 else 'rows'} × {k:,} {'column' if k == 1 else 'columns'}"
        kept = settings.query().get("matrix")
        st.caption(f"Read as {size}." + ("" if kept else " Too long for the link; download it instead."))
    return ("pasted", lab.digest(P)), P
