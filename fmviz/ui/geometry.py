"""The page Geometry: unit balls, flows of proximal operators, and their thresholds."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from fmviz.engine.penalties import PENALTIES
from fmviz.engine.settings import ParamSpec
from fmviz.figures import geometry as figures
from fmviz.figures.palette import regularizer_color
from fmviz.lab.operators import geometry as lab
from fmviz.lab.runs.provenance import array_hash
from fmviz.operators import certificate
from fmviz.typography import typeset
from fmviz.ui import shell, widgets
from fmviz.ui.charts import chart, small_chart
from fmviz.ui.guard import fragment
from fmviz.ui.settings.state import Settings, Several

_COLUMN = (1.6, 1.1, 0.8, 0.5, 0.3, 0.15)
TABLE: tuple[ParamSpec | Several, ...] = (
    Several("penalties", ("l1", "l21", "ti", "cs"), lab.NAMES, help="One picture per regularizer."),
    ParamSpec("plane", "choice", "diagonal", choices=tuple(lab.PLANES), help="Entries of P on the axes."),
    ParamSpec(
        "strength",
        "float",
        0.4,
        0.0,
        2.0,
        symbol=r"\lambda",
        help="Strength of the operator. Click the handle and use the arrow keys.",
    ),
    *(
        ParamSpec(
            letter,
            "float",
            value,
            -figures.REACH,
            figures.REACH,
            help="An entry of P; the arrow keys move it.",
        )
        for letter, value in (("a", 1.5), ("b", 0.6))
    ),
    ParamSpec("large", "choice", "cs", choices=lab.NAMES, help="Regularizer of the large picture."),
    ParamSpec("tau", "float", 0.2, 0.0, 2.0, symbol=r"\lambda", help="Strength of TI on this column."),
    *(
        ParamSpec(f"e{j}", "float", value, -10.0, 10.0, help="An entry of the column.")
        for j, value in enumerate(_COLUMN, start=1)
    ),
)
_WHY = "Why TI zeroes the relatively small"
_ENTRIES = tuple(f"e{j}" for j in range(1, len(_COLUMN) + 1))
_STYLE = """<style>
:is(.st-key-geometry_small, .st-key-geometry_entries) {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(6.5rem, 1fr)); gap: 0.7rem;
}
:is(.st-key-geometry_pictures, .st-key-geometry_story) {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 1rem 2rem;
}
.st-key-geometry_story {align-items: center}
[class*="st-key-geometry_panel_"] {gap: 0.4rem}
:is(.st-key-geometry_words, .st-key-geometry_formula) .katex-display {
  overflow-x: auto; overflow-y: hidden; margin: 0.1rem 0; padding-right: 5px; font-size: 0.95em;
}
.st-key-geometry_formula [data-testid="stMarkdown"]:has(.katex-display) {
  container-type: inline-size; width: 100%;
}
.st-key-geometry_formula .katex-display {font-size: clamp(0.55rem, 4.2cqi, 0.95rem)}
:is(.st-key-geometry_legend, .st-key-geometry_small) p {font-size: 0.85rem}
[data-testid="stColumn"]:has(.st-key-geometry_formula) {min-width: 15rem}
</style>"""


def render() -> None:
    """Draw the page."""
    settings = Settings(
        "geometry",
        TABLE,
        parts=("panels", "column", "exports"),
        expert=("exports",),
        unread=("dataset", "seed"),
    )
    with shell.page("Geometry", settings):
        st.html(_STYLE)
        shell.heading(
            settings,
            "Geometry",
            "The proximal operator **prox** moves P towards smaller Ω. It stops at corners and edges of the "
            "unit ball, where entries are **exactly zero**.",
        )
        if settings.shows("panels", "Balls and flow"):
            _section(settings)
        if settings.shows("column", _WHY):
            _column(settings)


# ------------------------------------------------------------------------------------------ the section


@fragment
def _section(settings: Settings) -> None:
    """Draw balls and flow; clicks and keys rerun only this fragment."""
    section, names, strength = lab.PLANES[settings["plane"]], settings["penalties"], settings["strength"]
    point = np.array([settings["a"], settings["b"]])
    moved = {name: lab.prox_of(section, name, point[None], strength)[0] for name in names}
    if names and settings["large"] not in names:
        settings.set(large=names[0])
    if names:
        st.markdown(lab.zeros_in_words(moved, strength))
    with st.container(key="geometry_pictures"):
        left, right = st.container(), st.container()
    with right:
        widgets.param(
            settings,
            "plane",
            "Entries a and b of P, taken from",
            labels={name: choice.label for name, choice in lab.PLANES.items()},
        )
        widgets.regularizers(settings, "penalties")
        for name, label in (
            ("strength", r"Strength $\lambda$"),
            *((x, f"${x}$ = {axis}") for x, axis in zip("ab", section.axes, strict=True)),
        ):
            widgets.param(settings, name, label, style="slider", step=0.05)
    if not names:
        left.info("Choose at least one regularizer.", icon=":material/touch_app:")
        return
    with left:
        _large(settings, section, point, moved[settings["large"]])
    with right, st.container(key="geometry_small"):
        for name in names:
            if name != settings["large"]:
                _small(settings, section, name, point, moved[name])
    grey, first, second, both = figures.ZERO_COLORS
    with st.container(key="geometry_legend"):
        st.markdown(
            f"Filled: the **unit ball**, Ω ≤ 1; dotted: Ω = ¼, 2, 4. Thin lines lead to the prox: "
            f'<span style="color:{grey}">●</span> no zeros &ensp; '
            f'<span style="color:{first}">━</span> a is exactly 0 &ensp; '
            f'<span style="color:{second}">┃</span> b is exactly 0 &ensp; '
            f'<span style="color:{both}">✕</span> both are exactly 0. &ensp; ◯ point, ● its prox, '
            "thick line: path as λ grows. **Click** or tap the large picture to move the point.",
            unsafe_allow_html=True,
        )
    with st.expander("The matrix and the operator", icon=":material/functions:", key="geometry_words"):
        st.latex(section.matrix)
        st.markdown(section.words)
        st.latex(r"\operatorname{prox}_{\lambda\Omega}(P)=\arg\min_Q \tfrac12\|Q-P\|_F^2+\lambda\,\Omega(Q)")
    if settings.shows("exports", "Copy as Python"):
        widgets.python_block(
            widgets.linked(
                lab.geometry_program(section, names, point.tolist(), strength),
                f"{', '.join(names)} of {_point(point)} at λ = {strength:g}",
                data={"P": array_hash(section.embed(point), np.zeros(0))},
            ),
            "Prints the results and their certificates.",
        )


@st.cache_resource(max_entries=64, show_spinner=False)
def _levels(place: str, name: str) -> list[np.ndarray]:
    """Return the unit ball and further levels of Ω."""
    return [lab.boundary(lab.PLANES[place], name, lab.circle(), level) for level in (1.0, 0.25, 2.0, 4.0)]


@st.cache_resource(max_entries=64, show_spinner=False)
def _ways(place: str, name: str, strength: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the paths of grid points to their prox, and masks of the entries that become 0."""
    ways = lab.flow(lab.PLANES[place], name, strength, figures.REACH, n=13, steps=4)
    return ways, lab.zero_codes(ways[:, -1])


def _figure(
    settings: Settings, section: lab.Section, name: str, point: np.ndarray, moved: np.ndarray, **options: Any
) -> tuple[go.Figure, str]:
    """Return a picture of the unit ball and the flow, and its alternative text."""
    place, strength = settings["plane"], settings["strength"]
    # Beyond the largest λ, to show entries that approach zero without reaching it.
    strengths = [*np.linspace(0, 4, 60), *2.0 ** np.arange(3, 12)]
    path = np.concatenate([lab.prox_of(section, name, point[None], at) for at in strengths])
    figure = figures.plane(
        _levels(place, name),
        _ways(place, name, strength),
        path,
        (point, moved),
        section.axes,
        color=regularizer_color(name),
        **options,
    )
    return figure, (
        f"Unit ball of Ω and flow of its operator. {PENALTIES[name].label} moves {_point(point)} to "
        f"{_point(moved)} at λ = {strength:g}."
    )


def _large(settings: Settings, section: lab.Section, point: np.ndarray, moved: np.ndarray) -> None:
    name = settings["large"]
    with st.container(border=True, key=f"geometry_panel_{name}"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            widgets.control(
                settings,
                "large",
                st.segmented_control,
                "The large picture",
                settings["penalties"],
                format_func=lambda name: PENALTIES[name].label,
                label_visibility="collapsed",
                required=True,
            )
            st.markdown(rf"$\Omega={section.formula(name)}$", width="content")
        lattice = np.round(np.arange(-20, 21) / 10, 10)
        figure, alt = _figure(settings, section, name, point, moved, height=360, lattice=lattice)
        key = f"geometry_{name}"
        chart(
            figure, key, alt, on_select=partial(_clicked, settings, f"{key}_chart"), selection_mode="points"
        )
        st.markdown(f"{_point(point)} → **{_point(moved)}**")
        widgets.certificate_badge(
            certificate(name, section.embed(point), section.embed(moved), settings["strength"])
        )


def _small(settings: Settings, section: lab.Section, name: str, point: np.ndarray, moved: np.ndarray) -> None:
    with st.container(gap="xxsmall", key=f"geometry_panel_{name}"):
        st.markdown(
            f'<span style="color:{regularizer_color(name)}">■</span> **{PENALTIES[name].label}** '
            f"→ {_point(moved)}",
            unsafe_allow_html=True,
        )
        figure, alt = _figure(settings, section, name, point, moved, height=110)
        small_chart(figure, f"geometry_{name}", alt)


def _clicked(settings: Settings, key: str) -> None:
    """Move the point to the clicked position."""
    for point in st.session_state[key]["selection"]["points"][:1]:
        settings.set(a=float(point["x"]), b=float(point["y"]))


def _point(values: np.ndarray) -> str:
    return "(" + ", ".join("0" if v == 0 else typeset(v) for v in values) + ")"


# ------------------------------------------------------------------------------------------ one column


@fragment
def _column(settings: Settings) -> None:
    """Draw a column of P against the threshold of TI."""
    st.subheader(_WHY)
    st.markdown(
        "TI shrinks all entries of a column by one threshold τ that grows with the **whole column**; entries "
        "small relative to the others vanish."
    )
    with st.container(border=settings.shows_any("tau", *_ENTRIES), key="geometry_column_box"):
        with st.container(key="geometry_entries"):
            for name in _ENTRIES:
                spec = settings.spec(name)
                widgets.control(
                    settings,
                    name,
                    st.number_input,
                    f"$p_{name[1:]}$",
                    spec.low,
                    spec.high,
                    step=0.1,
                    format="%.4g",
                )
        widgets.param(settings, "tau", r"Strength $\lambda$", style="slider", step=0.01)
    strength = settings["tau"]
    story = lab.column_story([settings[name] for name in _ENTRIES], strength)
    beside = st.container(key="geometry_story")
    gone = [f"p{name[1:]}" for name, q in zip(_ENTRIES, story.after, strict=True) if q == 0]
    chart(
        figures.column_bars(story.before, story.after, story.threshold, strength),
        "geometry_column",
        f"Six entries against the threshold {story.threshold:.4g} of TI and {strength:g} of ℓ₁. Exactly "
        f"zero: {', '.join(gone) or 'none'}.",
        place=beside,
    )
    with beside.container(key="geometry_formula"):
        st.latex(r"q_j=\operatorname{sign}(p_j)\max(|p_j|-\tau,\,0),\quad S_\theta=\textstyle\sum_j|q_j|")
        st.latex(story.latex(strength))
        soft = int((np.abs(story.before) <= strength).sum())
        st.markdown(
            f"**{story.kept:,} of {story.before.size:,}** entries exceed τ and stay; exactly 0: "
            f"{', '.join(gone) or 'none'}. ℓ₁ would zero **{soft:,}**, those up to λ = {strength:g}."
        )
        st.caption("The largest entry stays for every λ (atarashi2021, Theorem 7).")
        widgets.certificate_badge(story.certificate)
