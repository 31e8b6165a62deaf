"""The page Geometry: unit balls, flows of proximal operators, and their thresholds."""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st

from fmviz.engine.penalties import PENALTIES
from fmviz.engine.settings import ParamSpec
from fmviz.figures import geometry as figures
from fmviz.figures.palette import regularizer_color
from fmviz.lab.operators import geometry as lab
from fmviz.lab.runs.provenance import array_hash
from fmviz.lab.typography import with_minus
from fmviz.operators import certificate
from fmviz.ui import shell, widgets
from fmviz.ui.charts import chart
from fmviz.ui.guard import fragment
from fmviz.ui.settings.state import Settings, Several, Text

_REACH = figures.REACH
_STEP = 0.05
# Heights of the large picture and of the others, in pixels.
_LARGE, _SMALL = 400, 160
_LATTICE = np.round(np.arange(-20, 21) / 10, 10)
_LETTERS = ("a", "b", "c")
_COLUMN = (1.6, 1.1, 0.8, 0.5, 0.3, 0.15)
TABLE: tuple[ParamSpec | Several | Text, ...] = (
    Several("penalties", ("l1", "l21", "ti", "cs"), lab.NAMES, help="One picture each."),
    ParamSpec("dims", "choice", "2", choices=("2", "3"), help="How many entries of P are free."),
    ParamSpec(
        "plane", "choice", "column", choices=tuple(lab.PLANES), help="Which entries of P the axes are."
    ),
    ParamSpec(
        "solid", "choice", "corner", choices=tuple(lab.SOLIDS), help="Which entries of P the axes are."
    ),
    ParamSpec(
        "strength",
        "float",
        0.4,
        0.0,
        2.0,
        symbol=r"\lambda",
        help="How far the operator goes. Click the handle and use the arrow keys.",
    ),
    *(
        ParamSpec(letter, "float", value, -_REACH, _REACH, help="An entry of P; the arrow keys move it.")
        for letter, value in zip(_LETTERS, (1.5, 0.6, -0.4), strict=True)
    ),
    Text("large", help="The regularizer whose picture is large."),
    ParamSpec("tau", "float", 0.2, 0.0, 2.0, symbol=r"\lambda", help="The strength of TI on this column."),
    *(
        ParamSpec(f"e{j}", "float", value, -10.0, 10.0, help="An entry of the column.")
        for j, value in enumerate(_COLUMN, start=1)
    ),
)
PARTS = ("panels", "column", "exports")
EXPERT = ("exports",)
_GONE = {
    "flow": "The flow of the plane is always drawn.",
    **dict.fromkeys(("entry", "shrinkage"), "The pictures show where each entry goes."),
    **dict.fromkeys(("double", "halve", "back"), "Write other numbers into the boxes of the entries."),
}
_ENTRIES = tuple(f"e{j}" for j in range(1, len(_COLUMN) + 1))
_STYLE = """<style>
:is(.st-key-geometry_panels, .st-key-geometry_entries) {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(12rem, 1fr)); gap: 1rem;
}
.st-key-geometry_panels > div {height: 100%}
.st-key-geometry_entries {grid-template-columns: repeat(auto-fit, minmax(6.5rem, 1fr)); gap: 0.7rem}
[class*="st-key-geometry_panel_"] {padding: 0.7rem; gap: 0.5rem}
:is(.st-key-geometry_panels, .st-key-geometry_words, .st-key-geometry_formula) .katex-display {
  overflow-x: auto; overflow-y: hidden; margin: 0.1rem 0; padding-right: 5px; font-size: 0.95em;
}
.st-key-geometry_formula [data-testid="stMarkdown"]:has(.katex-display) {
  container-type: inline-size; width: 100%;
}
.st-key-geometry_formula .katex-display {font-size: clamp(0.55rem, 4.2cqi, 0.95rem)}
[data-testid="stColumn"]:has(.st-key-geometry_formula) {min-width: 15rem}
.st-key-geometry_legend p {font-size: 0.85rem}
</style>"""


def render() -> None:
    """Draw the page."""
    settings = Settings("geometry", TABLE, parts=PARTS, expert=EXPERT, unread=("dataset", "seed"), gone=_GONE)
    with shell.page("Geometry", settings):
        st.html(_STYLE)
        shell.heading(
            settings,
            "Geometry",
            "A regularizer is a shape, its operator a motion: **prox** moves P to where Ω is smaller, and "
            "stops on corners and edges, where entries are **exactly zero**.",
        )
        _section(settings)
        if settings.shows("column", "Why TI zeroes the relatively small"):
            _column(settings)


# ------------------------------------------------------------------------------------------ the section


@fragment
def _section(settings: Settings) -> None:
    """Draw balls and flow; clicks and keys rerun this fragment alone."""
    which, among = ("plane", lab.PLANES) if settings["dims"] == "2" else ("solid", lab.SOLIDS)
    section, names = among[settings[which]], settings["penalties"]
    letters = _LETTERS[: len(section.cells)]
    with st.container(border=True, key="geometry_box"):
        with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
            widgets.param(
                settings,
                "dims",
                "Entries",
                labels={"2": "Two (2-D)", "3": "Three (3-D)"},
                place=st.container(width="content"),
            )
            words = {name: choice.label for name, choice in among.items()}
            widgets.param(settings, which, "taken from", labels=words, place=st.container(width="content"))
            widgets.regularizers(settings, "penalties", place=st.container(width="content"))
        for cell, (name, label) in zip(
            st.columns(1 + len(letters)),
            [
                ("strength", r"Strength $\lambda$"),
                *((x, f"${x}$ = {axis}") for x, axis in zip(letters, section.axes, strict=True)),
            ],
            strict=True,
        ):
            widgets.param(settings, name, label, style="slider", step=_STEP, place=cell)
    point = np.array([settings[letter] for letter in letters])
    if not names:
        st.info("No regularizer is chosen. Choose at least one above.", icon=":material/touch_app:")
        return
    strength = settings["strength"]
    if settings.shows("panels", "Balls and flow"):
        _legend(len(section.cells))
        # TI, where none was chosen: it differs most from ℓ₁.
        large = next(name for name in (settings["large"], "ti", *names) if name in names)
        left, right = st.columns([3, 2], gap="medium")
        with left, st.container(border=True, key=f"geometry_panel_{large}"):
            _panel(settings, section, large, point, strength, large=True)
        with right, st.container(key="geometry_panels"):
            for name in names:
                if name != large:
                    with st.container(border=True, key=f"geometry_panel_{name}"):
                        _panel(settings, section, name, point, strength)
        with st.expander("The matrix and the operator", icon=":material/functions:", key="geometry_words"):
            st.latex(section.matrix)
            st.markdown(section.words)
            st.latex(
                r"\operatorname{prox}_{\lambda\Omega}(P)=\arg\min_Q \tfrac12\|Q-P\|_F^2+\lambda\,\Omega(Q)"
            )
    if not settings.shows("exports", "Copy as Python"):
        return
    widgets.python_block(
        widgets.linked(
            lab.geometry_program(section, names, point.tolist(), strength),
            f"{', '.join(names)} of {_point(point)} at λ = {strength:g}",
            data={"P": array_hash(section.embed(point), np.zeros(0))},
        ),
        "Prints the results and their certificates.",
    )


@st.cache_data(max_entries=64, show_spinner=False)
def _levels(dims: str, place: str, name: str) -> list[np.ndarray]:
    """Return the unit ball and, in the plane, further levels of Ω."""
    if dims == "3":
        return [lab.boundary(lab.SOLIDS[place], name, lab.sphere())]
    section = lab.PLANES[place]
    return [lab.boundary(section, name, lab.circle(), level) for level in (1.0, 0.25, 2.0, 4.0)]


@st.cache_data(max_entries=64, show_spinner=False)
def _ways(place: str, name: str, strength: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the paths of grid points to their prox, and which entries become 0."""
    ways = lab.flow(lab.PLANES[place], name, strength, _REACH, n=13, steps=4)
    return ways, lab.zero_codes(ways[:, -1])


def _panel(
    settings: Settings,
    section: lab.Section,
    name: str,
    point: np.ndarray,
    strength: float,
    *,
    large: bool = False,
) -> None:
    color = regularizer_color(name)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(
            f'<span style="color:{color}">■</span> **{PENALTIES[name].label}**',
            unsafe_allow_html=True,
            width="content",
        )
        st.markdown(rf"$\Omega={section.formula(name)}$", width="content")
        if not large and settings.shows("large", "Picture that is large"):
            st.button(
                "Enlarge",
                key=f"geometry_enlarge_{name}",
                type="tertiary",
                icon=":material/open_in_full:",
                disabled=settings.locks("large"),
                on_click=lambda: settings.set(large=name),
            )
    moved = lab.prox_of(section, name, point[None], strength)[0]
    # Beyond the largest λ, to show entries that approach zero but never reach it.
    path = lab.prox_path(
        section, name, point.tolist(), np.concatenate([np.linspace(0, 4, 60), 2.0 ** np.arange(3, 12)])
    )
    place = settings["plane"] if settings["dims"] == "2" else settings["solid"]
    levels = _levels(settings["dims"], place, name)
    key, height = f"geometry_{name}", _LARGE if large else _SMALL
    said = f"{PENALTIES[name].label} moves {_point(point)} to {_point(moved)} at λ = {strength:g}."
    if settings["dims"] == "2":
        ways, codes = _ways(place, name, strength)
        figure = figures.plane(
            levels,
            ways,
            codes,
            path,
            point,
            moved,
            section.axes,
            color=color,
            lattice=_LATTICE,
            height=height,
        )
        chart(
            figure,
            key,
            f"Unit ball of Ω and flow of its operator. {said}",
            on_select=partial(_clicked, settings, f"{key}_chart"),
            selection_mode="points",
        )
    else:
        figure = figures.space(levels[0], path, point, moved, section.axes, color=color, height=height)
        chart(figure, key, f"Unit ball of Ω in three dimensions. {said}")
    _numbers(section, name, point, moved, strength, large=large)


def _clicked(settings: Settings, key: str) -> None:
    """Move the point to where the plane was clicked."""
    points = st.session_state[key]["selection"]["points"]
    if points:
        settings.set(a=float(points[0]["x"]), b=float(points[0]["y"]))


def _point(values: np.ndarray) -> str:
    return "(" + ", ".join("0" if v == 0 else with_minus(f"{v:.3g}") for v in values) + ")"


def _numbers(
    section: lab.Section, name: str, point: np.ndarray, moved: np.ndarray, strength: float, *, large: bool
) -> None:
    st.markdown(f"{_point(point)} → **{_point(moved)}**")
    if large:
        widgets.certificate_badge(certificate(name, section.embed(point), section.embed(moved), strength))


def _legend(dims: int) -> None:
    with st.container(key="geometry_legend"):
        if dims == 2:
            grey, first, second, both = figures.ZERO_COLORS
            st.markdown(
                f"Filled: the **unit ball**, Ω ≤ 1; dotted: Ω = ¼, 2, 4. Thin lines lead to the prox: "
                f'<span style="color:{grey}">●</span> none is zero &ensp; '
                f'<span style="color:{first}">━</span> a is exactly 0 &ensp; '
                f'<span style="color:{second}">┃</span> b is exactly 0 &ensp; '
                f'<span style="color:{both}">✕</span> both are. &ensp; ◯ the point, ● its prox, thick line: '
                "its way as λ grows. **Click** or tap to move the point.",
                unsafe_allow_html=True,
            )
        else:
            st.markdown(
                "The solid is the **unit ball**, Ω ≤ 1. ◯ the point, ● its prox, the grey line its way as λ "
                "grows. Drag to turn, move the point with the sliders."
            )


# ------------------------------------------------------------------------------------------ one column


@fragment
def _column(settings: Settings) -> None:
    """Draw one column of P against the threshold of TI."""
    st.subheader("Why TI zeroes the relatively small")
    st.markdown(
        "TI lowers every entry of a column by one threshold τ, which grows with the **whole column**: what "
        "goes is small beside the others."
    )
    with st.container(border=True, key="geometry_column_box"):
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
    left, right = st.columns([3, 2], gap="medium", vertical_alignment="center")
    gone = [f"p{name[1:]}" for name, q in zip(_ENTRIES, story.after, strict=True) if q == 0]
    chart(
        figures.column_bars(story.before, story.after, story.threshold, strength),
        "geometry_column",
        f"Six entries against the threshold {story.threshold:.4g} of TI and {strength:g} of ℓ₁. Exactly "
        f"zero: {', '.join(gone) or 'none'}.",
        place=left,
    )
    with right, st.container(key="geometry_formula"):
        st.latex(r"q_j=\operatorname{sign}(p_j)\max(|p_j|-\tau,\,0),\quad S_\theta=\textstyle\sum_j|q_j|")
        st.latex(story.latex(strength))
        soft = int((np.abs(story.before) <= strength).sum())
        st.markdown(
            f"**{story.kept:,} of {story.before.size:,}** entries are above τ and stay; "
            f"{', '.join(gone) or 'none'} {'is' if len(gone) == 1 else 'are'} exactly 0. ℓ₁ would zero "
            f"**{soft:,}**, those up to λ = {strength:g}."
        )
        st.caption("The largest entry always stays, whatever λ is (atarashi2021, Theorem 7).")
        widgets.certificate_badge(story.certificate)
