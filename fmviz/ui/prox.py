"""The page Operators: several proximal operators on one matrix P, over a grid of λ."""

from __future__ import annotations

import numpy as np
import streamlit as st

from fmviz.engine.counting import used_interactions
from fmviz.engine.settings import ParamSpec
from fmviz.figures.palette import regularizer_color
from fmviz.lab import operators as lab
from fmviz.lab.runs.provenance import array_hash
from fmviz.lab.store.packing import pack_parameters
from fmviz.plot import counts_figure
from fmviz.stage import FactorFrame, Panel, View
from fmviz.typography import counted
from fmviz.ui import shell, widgets
from fmviz.ui.charts import chart
from fmviz.ui.components import matrix_view
from fmviz.ui.escape import plain
from fmviz.ui.guard import fragment
from fmviz.ui.settings.state import Settings, Several, Text

TABLE = (
    Several(
        "regularizers",
        ("l1", "l21", "ti", "cs"),
        tuple(lab.VARIANTS),
        "Operators applied to the same P. TI has two variants: squared norms of columns, its definition, or "
        "of rows.",
    ),
    ParamSpec(
        "source",
        "choice",
        "sampled",
        choices=("sampled", "pasted"),
        help="Draw P at random, or paste a matrix.",
    ),
    ParamSpec(
        "distribution",
        "choice",
        "blocks",
        choices=tuple(lab.DISTRIBUTIONS),
        help="Distribution of the entries of P. The seed is in the sidebar.",
    ),
    ParamSpec(
        "d",
        "int",
        40,
        1,
        lab.MAX_FEATURES,
        symbol="d",
        help=r"Number of features: rows of $P\in\mathbb{R}^{d\times k}$.",
    ),
    ParamSpec(
        "k",
        "int",
        8,
        1,
        lab.MAX_RANK,
        symbol="k",
        help=r"Rank: columns of $P\in\mathbb{R}^{d\times k}$.",
    ),
    Text(
        "matrix",
        help="One row per line; entries separated by commas, semicolons, tabs or spaces. Python output also "
        "works.",
    ),
    ParamSpec(
        "log2lambda",
        "int",
        -3,
        lab.EXPONENTS[0],
        lab.EXPONENTS[-1],
        symbol=r"\lambda",
        help=r"λ in $\arg\min_Q\frac12\|Q-P\|_F^2+\lambda\,\Omega(Q)$. Drag, or click the handle and use the "
        "arrow keys; the matrices update while you drag.",
    ),
    ParamSpec(
        "degree",
        "int",
        3,
        2,
        10,
        symbol="m",
        help="Order of the interactions for TI and CS of order m. m = 2 gives TI and CS.",
    ),
)
EXAMPLE = "3.0  0.5\n-2.0 1.0\n0.5  -0.2\n0.1  2.5\n"


def draw_matrix(settings: Settings) -> tuple[tuple[object, ...], np.ndarray | None]:
    """Draw the controls of P; return a cache key of its contents, and P or None."""
    pasted = settings["source"] == "pasted"
    asked = ("matrix",) if pasted else ("distribution", "d", "k")
    distribution = lab.DISTRIBUTIONS[settings["distribution"]]
    said = f"The matrix P: {distribution.label}, {settings['d']:,} × {settings['k']:,}"
    shown = settings.shows_any("source", *asked)
    # Random matrices need no input: show the pictures first.
    folded = shown and not pasted and not settings["lesson"]
    with shell.settings_box("prox_source_box", said, folded=folded, border=shown):
        widths = [3] if pasted else [1.2, 1, 1]
        if settings.shows("source"):
            first_column, *other_columns = st.columns([1.1, *widths], vertical_alignment="top")
            widgets.param(
                settings,
                "source",
                "The matrix P",
                labels={"sampled": "Drawn", "pasted": "Pasted"},
                place=first_column,
            )
        else:
            other_columns = st.columns(widths, vertical_alignment="top")
        if pasted:
            with other_columns[0]:
                return _pasted(settings)
        widgets.param(
            settings,
            "distribution",
            labels={name: choice.label for name, choice in lab.DISTRIBUTIONS.items()},
            style="select",
            help=distribution.help,
            place=other_columns[0],
        )
        widgets.param(settings, "d", "Features d", style="slider", place=other_columns[1])
        widgets.param(settings, "k", "Rank k", style="slider", place=other_columns[2])
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
    if settings.shows("matrix") and not settings.query().get("matrix"):
        st.caption("Too long for the link; download it instead.")
    return ("pasted", array_hash(P, np.empty(0))), P


# The slider stays visible while the page scrolls.
_STYLE = """<style>
div:has(> .st-key-prox_strength) {
  position: sticky; top: 3.75rem; z-index: 100; padding: 0.4rem 0 0.5rem; background: BACKGROUND;
}
.st-key-prox_strength > div:first-child {flex: 1 1 18rem; min-width: 0}
[class*="st-key-prox_worked_"] {display: grid; grid-template-columns: minmax(0, 1fr) 19rem; gap: 1rem}
@media (max-width: 1000px) {[class*="st-key-prox_worked_"] {grid-template-columns: minmax(0, 1fr)}}
.stTabs .katex-display {overflow-x: auto; overflow-y: hidden; font-size: 0.95em}
</style>"""
LABELS = {v.id: v.label for v in lab.VARIANTS.values()}


def render() -> None:
    """Draw the page."""
    settings = Settings(
        "prox",
        TABLE,
        parts=("curves", "worked", "exports"),
        expert=("source",),
        unread=("dataset",),
    )
    with shell.page("Proximal operators", settings):
        # The sticky slider covers the scrolled content with the background colour.
        light, dark = (
            st.get_option(f"theme.{kind}.backgroundColor") or "Canvas" for kind in ("light", "dark")
        )
        st.html(_STYLE.replace("BACKGROUND", f"light-dark({light}, {dark})"))
        shell.heading(
            settings,
            "Proximal operators",
            "In each training step a proximal operator shrinks the factors **P** to **Q**. **Exact zeros** "
            "in Q determine the features that the model uses and, in **QQᵀ**, its interactions. Increase λ "
            "and watch.",
        )
        widgets.several(
            settings, "regularizers", "Operators", labels=LABELS, first=widgets.FIRST_REGULARIZERS
        )
        token, P = draw_matrix(settings)
        chosen = settings["regularizers"]
        if P is None:
            return
        if not chosen:
            st.info("Choose at least one operator above, or:", icon=":material/touch_app:")
            st.button(
                "Show ℓ₁, ℓ₂,₁, TI and CS",
                key="prox_default_regularizers",
                on_click=lambda: settings.reset("regularizers"),
            )
            return
        _results(settings, token, P, chosen)


# ------------------------------------------------------------------------------------------- computing


@st.cache_resource(max_entries=24, show_spinner="Applying the operator at 15 strengths…")
def _study(token: tuple[object, ...], variant: str, degree: int, _P: np.ndarray) -> lab.Study:
    # Shared between sessions and never written to: the arrays are read-only.
    return lab.study(_P, lab.with_degree(lab.VARIANTS[variant], degree))


@st.cache_resource(max_entries=8, show_spinner="Preparing the matrices…")
def pictures(
    token: tuple[object, ...],
    variants: tuple[str, ...],
    driver: str | int,
    _P: np.ndarray,
    *,
    degree: int,
) -> bytes:
    """Return the payload of a matrix view of Q and QQᵀ with a frame per λ.

    Parameters
    ----------
    token : tuple
        Identifies the contents of P for the cache.
    variants : tuple of str
        Keys of `lab.VARIANTS`.
    driver : str or int
        The key of the slider with labels of `widgets.power_label`; the exponent if the slider is hidden.
    _P : (d, k) ndarray
        The matrix.
    degree : int
        The order m of operators that have one.
    """
    panels = []
    for name in variants:
        study = _study(token, name, degree, _P)
        frames = [
            FactorFrame(q, widgets.power_label(e), f"{counted(m, 'interaction')} · {counted(n, 'feature')}")
            for e, q, m, n in zip(study.exponents, study.Q, study.interactions, study.features, strict=True)
        ]
        if isinstance(driver, int):
            frames = [frames[study.at(driver)]]
        panels.append(Panel(study.variant.label, frames, color=regularizer_color(study.variant.penalty.name)))
    return View(
        panels,
        driver_key=driver if isinstance(driver, str) else None,
        columns=4,
        min_width=200,
        max_height=300,
    ).encode()


# --------------------------------------------------------------------------------------------- drawing


@fragment
def _results(settings: Settings, token: tuple[object, ...], P: np.ndarray, chosen: tuple[str, ...]) -> None:
    """Draw the part that depends on λ; moving the slider reruns only this fragment."""
    degree = settings["degree"]
    studies = [_study(token, name, degree, P) for name in chosen]
    with st.container(key="prox_strength", horizontal=True, vertical_alignment="top", gap="medium"):
        exponent = widgets.control(
            settings,
            "log2lambda",
            st.select_slider,
            "Strength λ",
            lab.EXPONENTS,
            format_func=widgets.power_label,
        )
        if any("degree" in study.variant.penalty.settings for study in studies):
            widgets.param(settings, "degree", "Order m", style="slider")
    remaining = [f"{study.variant.label} **{study.interactions[study.at(exponent)]:,}**" for study in studies]
    st.markdown(f"Remaining interactions, of {used_interactions(P):,}: {', '.join(remaining)}.")
    driver = settings.key("log2lambda") if settings.shows("log2lambda") else exponent
    matrix_view(pictures(token, chosen, driver, P, degree=degree), key="prox_view")
    if settings.shows("curves", "Interactions and features against λ"):
        _curves(studies, exponent)
    if settings.shows("worked", "Formula, certificate and numbers"):
        _formulas(P, studies, exponent)
    if settings.shows("exports", "Downloads and code"):
        _exports(settings, P, studies, exponent)


def _curves(studies: list[lab.Study], exponent: int) -> None:
    st.subheader("Interactions and features against λ")
    for column, what in zip(st.columns(2), ("used interactions", "used features"), strict=True):
        figure, words = counts_figure(studies, what, exponent)
        chart(figure, key=f"prox_{what.replace(' ', '_')}", alt=words, place=column)


def _formulas(P: np.ndarray, studies: list[lab.Study], exponent: int) -> None:
    box = st.expander("Formula, certificate and numbers", icon=":material/functions:", key="prox_worked")
    for tab, study in zip(box.tabs([study.variant.label for study in studies]), studies, strict=True):
        penalty, at = study.variant.penalty, study.at(exponent)
        Q = study.Q[at]
        with tab, st.container(key=f"prox_worked_{study.variant.id}"):
            with st.container():
                formula, operator, selects = penalty.words()
                st.latex(formula)
                st.latex(operator)
                st.caption(f"Selects {plain(selects)}. Source: {penalty.source}.")
                widgets.certificate_badge(float(study.certificates[at]))
                entries = counted(study.entries[at], "entry", "entries")
                st.caption(f"{entries} of Q, {counted(study.features[at], 'feature')}.")
            with st.container():
                size = "‖pⱼ‖₂" if penalty.row_wise else "|pⱼ₀|"
                table = lab.worked_table(P, Q, study.variant, column=0).map(lambda x: f"{x:.4g}")
                st.table(
                    table.set_axis(["j", size, "loses", "leaves"], axis=1), border=False, hide_index=True
                )
                st.caption("Sorted, around the last non-zero entry.")


def _exports(settings: Settings, P: np.ndarray, studies: list[lab.Study], exponent: int) -> None:
    st.subheader("Downloads")
    widgets.download(
        "P and all Q (npz)",
        lambda: pack_parameters(
            {
                "P": P,
                "lambdas": np.array([2.0**e for e in lab.EXPONENTS]),
                **{f"Q_{study.variant.id}": study.Q for study in studies},
            }
        ),
        "operators.npz",
        key="prox_npz",
        help="All results at every λ in full precision, for numpy.load.",
    )
    widgets.python_block(
        widgets.linked(
            lab.python_source(
                [study.variant for study in studies],
                exponent,
                **settings.as_dict("d", "k", "distribution", "seed"),
                P=P if settings["source"] == "pasted" else None,
            ),
            f"{', '.join(study.variant.label for study in studies)} at λ = 2^{exponent} on P, "
            f"{P.shape[0]} × {P.shape[1]}",
            data={"P": array_hash(P, np.empty(0))},
        ),
        "Prints the same counts and certificates.",
    )
