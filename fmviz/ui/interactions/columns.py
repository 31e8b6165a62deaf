"""Effects of columns on predictions: single columns as curves, pairs of columns as surfaces."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from fmviz.engine.settings import ParamSpec
from fmviz.lab.interpretation.reading import exact_search
from fmviz.lab.search.findings import Findings
from fmviz.report import main_figure, pair_figure
from fmviz.stage import Cell, CodesFrame, Panel, View, encode_codes
from fmviz.typography import typeset
from fmviz.ui import widgets
from fmviz.ui.charts import chart
from fmviz.ui.components import matrix_view
from fmviz.ui.escape import plain
from fmviz.ui.interactions.opened import Opened, read_columns
from fmviz.ui.settings.state import Settings, Whole

TABLE = (
    Whole("pair", help="The column drawn as a curve, or two columns drawn as a surface, by number."),
    ParamSpec(
        "strengths",
        "choice",
        "best",
        choices=("best", "sparsest"),
        help="The candidate with the best predictions, or the sparsest one within one standard error of it.",
    ),
)
_FIRST, _ACROSS = 6, 3
_LISTED = 60
_GREY = "color: #8b929c"
# A phone shows a list in place of the table, which would cut off the sentences.
_STYLE = """<style>
.st-key-interactions_list {display: none}
@media (max-width: 640px) {
  .st-key-interactions_list {display: flex}
  .st-key-interactions_table {display: none}
}
</style>"""


def draw(settings: Settings, reading: Opened) -> None:
    """Draw the ranking of columns and pairs of columns, the chosen one, and all single columns."""
    findings = read_columns(reading, settings["strengths"])
    if findings is None:
        return
    used = reading.run.last.get("used_interactions", 0)
    d = reading.attributes.of_column.size
    pairs, columns, test = map(plain, findings.sentences)
    st.markdown(f"**{pairs} {columns}** Pairs of features used: {used:,} of {d * (d - 1) // 2:,}.")
    _ranking(settings, findings)
    st.caption(f"{test} Grey ones do not stand out.")
    if len(findings.candidates):
        st.markdown(plain(findings.message))
        with st.expander("The candidates and their errors", icon=":material/leaderboard:"):
            widgets.param(
                settings,
                "strengths",
                "Described",
                labels={"best": "Best prediction", "sparsest": "Sparsest"},
            )
            candidates(findings.candidates)
    _chosen(settings, findings)
    st.subheader("Single columns")
    mains = findings.columns.head(_LISTED)
    _curves(findings, mains[:_FIRST])
    if len(mains) > _FIRST:
        with st.expander(f"The other {len(mains) - _FIRST:,} columns", icon=":material/show_chart:"):
            _curves(findings, mains[_FIRST:])


def candidates(errors: Any) -> None:
    """Draw the errors of the candidates of a contest, rows of a table, as a table."""
    table = pd.DataFrame(errors)
    shown = {name: st.column_config.NumberColumn(format="%.4g") for name in table.columns[1:]}
    st.dataframe(
        table, hide_index=True, column_config=shown, alt="Errors of the candidates on held-out rows."
    )


def _curves(findings: Findings, columns: pd.DataFrame) -> None:
    places = [place for _ in range(0, len(columns), _ACROSS) for place in st.columns(_ACROSS, gap="medium")]
    for row, place in zip(columns.itertuples(), places, strict=False):
        with place:
            figure = main_figure(findings.effects, row.column)
            chart(figure, key=f"interactions_main_{row.column}", alt=row.sentence)
            st.caption(plain(row.sentence if row.stands_out else f"{row.sentence} Within chance."))


def _chosen(settings: Settings, findings: Findings) -> None:
    """Draw the curve or surface of the chosen column or pair."""
    effects, shown = findings.effects, settings["pair"]
    if not shown or len(shown) > 2 or max(shown) >= len(effects.columns) or len({*shown}) < len(shown):
        shown = tuple(findings.pairs[["a", "b"]].iloc[0])
    names = [effects.columns[place].name for place in shown]
    st.subheader(plain(" × ".join(names)))
    if len(shown) == 1:
        sentence, figure = effects.main_sentence(*shown), main_figure(effects, *shown)
    else:
        sentence = effects.pair_sentence(*shown)
        figure = pair_figure(effects.surface(*shown), effects.unit, dark=st.context.theme.type == "dark")
    st.markdown(plain(sentence))
    chart(figure, key="interactions_surface", alt=sentence)
    st.button(
        "Its pairs of features",
        icon=":material/format_list_numbered:",
        key="interactions_to_pairs",
        on_click=settings.set,
        kwargs={"view": "pairs", "find": ";".join(map(exact_search, names))},
    )


def _ranking(settings: Settings, findings: Findings) -> None:
    every = findings.ranked
    table = every[["name", "size", "sentence"]]
    # Three lines, in case one wraps.
    row = 66 if table["sentence"].str.len().max() > 90 or table["name"].str.len().max() > 30 else 35

    def chosen(row: int | None) -> None:
        if row is not None:
            settings.set(pair=tuple(int(place) for place in every[["a", "b"]].iloc[row] if place >= 0))

    def picked() -> None:
        chosen(next(iter(st.session_state["interactions_columns"]["selection"]["rows"]), None))

    with st.container(key="interactions_list"):
        lines = [
            f"**{plain(row.name)}** · {typeset(row.size, '.3g')}: "
            f"{plain(row.sentence)}{'' if row.stands_out else ' Within chance.'}"
            for row in every.head(_LISTED).itertuples(index=False)
        ]
        st.html(_STYLE)
        st.selectbox(
            "Column, or pair of columns",
            range(len(lines)),
            index=None,
            format_func=table["name"].tolist().__getitem__,
            key="interactions_listed",
            on_change=lambda: chosen(st.session_state["interactions_listed"]),
        )
        st.markdown("\n".join(f"- {line}" for line in lines))
    st.container(key="interactions_table").dataframe(
        table.style.apply(lambda row: ["" if every["stands_out"][row.name] else _GREY] * len(row), axis=1),
        key="interactions_columns",
        hide_index=True,
        on_select=picked,
        selection_mode="single-row",
        row_height=row,
        height=min(row * len(table), 400) + 38,
        column_config={
            "name": st.column_config.TextColumn("Column, or pair of columns", width=200),
            "size": st.column_config.ProgressColumn(
                "Typical size",
                format="%.3g",
                min_value=0.0,
                max_value=float(table["size"].max()) or 1.0,
                width=150,
                help="Standard deviation over typical rows: of a column's effect, or of a pair's effect "
                f"beyond both single columns, in {plain(findings.effects.unit)}.",
            ),
            "sentence": st.column_config.TextColumn("Largest effect on predictions", width=560),
        },
        alt="Columns and pairs of columns with their effects on predictions.",
    )


def draw_matrix(settings: Settings, reading: Opened) -> None:
    """Draw the typical sizes of all pairs of columns as a matrix; a click on a cell shows its surface."""
    findings = read_columns(reading, settings["strengths"])
    if findings is None:
        return
    names = [column.name for column in findings.effects.columns]
    codes, scale = encode_codes(findings.effects.matrix, grey_diagonal=True)

    def opened(cell: Cell) -> None:
        if cell.row != cell.col:
            pair = min(cell.row, cell.col), max(cell.row, cell.col)
            settings.set(pair=pair, view="attributes")

    panel = Panel(
        "Columns",
        [CodesFrame(codes, scale, caption=f"{len(findings.effects.pairs):,} pairs")],
        row_labels=names,
        col_labels=names,
        gram_label="size",
    )
    view = View([panel], clickable=True, signed=False, named=True, max_height=520)
    matrix_view(view, key="interactions_groups", on_cell=opened)
    st.caption(
        f"Each cell is the typical size of a pair of columns, in {plain(findings.effects.unit)}. "
        "Click a cell to see its surface."
    )
