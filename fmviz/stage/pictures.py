"""Pictures for the stage: matrices with frames for λ or epochs, and curves, of limited size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from fmviz.figures.training import Plot, evenly
from fmviz.stage.matrices import NOT_AN_INTERACTION, FactorFrame, Frame, Panel, View

MOST_FEATURES = 200
"""Maximum number of features in the matrices of a saved picture, the strongest used ones."""
MOST_FRAMES = 60
ASK = "Click a cell to see the explanation of its weight, or why it is zero."
_MOST_ROWS = 600


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture of a model, a path or a run.

    Attributes
    ----------
    panels : sequence of Panel
        Matrices of features, with the same frames.
    names : sequence of str
        The feature names.
    charts : sequence of dict
        Charts by `chart_of` and `chart_of_figure`.
    history : sequence of mapping
        Records of epochs for `chart_of`.
    x : str
        The horizontal axis, a column of the history.
    scale : float, optional
        The end of the colour scale.
    along : str
        The axis of the slider, "epochs" or "values of λ".
    start : int, optional
        The first displayed frame, by default the last.
    state : (str, str, str)
        A word, its tone and a sentence on a run.
    turn : int
        A counter that increases with every replacement of the picture.
    total : int
        The original number of frames, if the panels have fewer.
    omitted : str
        A sentence on omitted features.
    marks : sequence of (int, str)
        Epochs of changed strengths, with labels.
    title : str
        The heading above the picture.
    """

    panels: Sequence[Panel] = ()
    names: Sequence[str] = ()
    charts: Sequence[Mapping[str, Any]] = ()
    history: Sequence[Mapping[str, Any]] = ()
    x: str = "epoch"
    scale: float | None = None
    along: str = "epochs"
    start: int | None = None
    state: tuple[str, str, str] = ("", "", "")
    turn: int = 0
    total: int = 0
    omitted: str = ""
    marks: Sequence[tuple[int, str]] = ()
    title: str = ""

    def reduced(self, frames: int = MOST_FRAMES) -> tuple[Picture, str]:
        """Return the picture with the strongest features and some frames, and a sentence on omissions."""
        panels, names, words = list(self.panels), list(self.names), [self.omitted]
        most = max((len(panel.frames) for panel in panels), default=0)
        kept = evenly(most, frames)
        start = None if self.start is None else int(np.abs(kept - self.start).argmin())
        if most > frames:
            panels = [
                replace(panel, frames=[panel.frames[at] for at in kept]) if len(panel.frames) > 1 else panel
                for panel in panels
            ]
        if len(kept) < (total := max(most, self.total)) and most > 1:
            words.append(f"Shows {len(kept):,} of {total:,} {self.along}, evenly spaced.")
        if len(names) > MOST_FEATURES and panels:
            learned = [panel for panel in panels if panel.color and not panel.classes] or panels
            strength = np.sum([_strength(frame) for panel in learned for frame in panel.frames], axis=0)
            order = np.argsort(-strength, kind="stable")[:MOST_FEATURES]
            used = int(np.count_nonzero(strength))
            features = np.sort(order[strength[order] > 0] if used else order)
            words.append(strongest_words(features.size, used, len(names)))
            panels = [
                replace(panel, frames=[_restricted(frame, features) for frame in panel.frames], blocks=())
                for panel in panels
            ]
            names = [names[j] for j in features]
        history = [self.history[at] for at in evenly(len(self.history), _MOST_ROWS)]
        picture = replace(self, panels=panels, names=names, history=history, start=start)
        return picture, " ".join(filter(None, words))

    def payload(self, **options: Any) -> bytes:
        """Encode the picture for the module, with some attributes of its `View` replaced."""
        played = any(len(panel.frames) > 1 for panel in self.panels)
        columns = names_in(self.charts, self.x) if self.history else []
        (word, tone, sentence), names = self.state, self.names or None
        learned = [panel.frames[0] for panel in self.panels if panel.color]
        reading = (
            "Each cell is the weight of a pair of features: orange is positive, blue is negative, and blank "
            "is exactly zero." * bool(learned),
            f"The slider steps through {self.along}." * played,
            ASK * any(isinstance(frame, FactorFrame) for frame in learned),
        )
        stage = {
            "state": {"word": word, "tone": tone, "sentence": sentence},
            "numbers": None,
            "marks": self.marks,
            "turn": self.turn,
            "phase": "",
            "run": "",
            "live": None,
            "x": self.x,
            "title": self.title,
            "film": played,
            "charts": self.charts,
            "names": columns,
            "generation": "",
            "rows": [row_of(record, columns) for record in self.history],
        }
        view = View(
            # Rows and columns of codes are also features.
            [replace(panel, row_labels=names, col_labels=names) for panel in self.panels],
            show="gram",
            feature_names=names,
            gram_scale=self.scale,
            columns=len(self.panels) or None,
            min_width=170,
            player="rests" if played else False,
            player_label=f"Step through {self.along}",
            start=self.start,
            clickable="explained",
            ask=" ".join(filter(None, reading)),
            zoom=True,
            named=True,
            empty="",
        )
        return replace(view, **options).encode(stage=stage)


def strongest_words(shown: int, used: int, total: int) -> str:
    """Return the sentence on omitted features."""
    if not used:
        return f"No feature is used; matrices show the first {shown:,} of {total:,}."
    which = f"{shown:,} strongest of {used:,}" if shown < used else f"{used:,}"
    return f"Matrices show the {which} used features; the data have {total:,}."


def _strength(frame: Frame) -> np.ndarray:
    """Return the strength of every feature, relative to the strongest."""
    if isinstance(frame, FactorFrame):
        size = np.square(np.asarray(frame.values)).sum(axis=1)
    else:
        codes = np.asarray(frame.codes, dtype=float)
        size = np.where(codes == NOT_AN_INTERACTION, 0.0, np.square(codes)).sum(axis=1)
    return np.asarray(size / (size.max(initial=0.0) or 1.0))


def _restricted(frame: Frame, features: np.ndarray) -> Frame:
    if isinstance(frame, FactorFrame):
        return replace(frame, values=np.asarray(frame.values)[features])
    return replace(frame, codes=np.asarray(frame.codes)[np.ix_(features, features)])


# ------------------------------------------------------------------------------------------------- curves


def chart_of(title: str, plots: Iterable[Plot]) -> dict[str, Any]:
    """Describe curves of the columns of a history."""
    return {
        "title": title,
        "rows": [
            {
                "series": [asdict(curve) for curve in plot.curves],
                "zero": plot.zero,
                "log": plot.metric.axis == "log",
                "top": plot.metric.limits[1] or 0.0,
                "floors": plot.floors,
            }
            for plot in plots
        ],
    }


def chart_of_figure(title: str, figure: Any) -> dict[str, Any]:
    """Describe the lines of a Plotly figure with one pair of axes."""
    across, down = figure.layout.xaxis, figure.layout.yaxis
    series = [
        {
            "name": trace.name if trace.showlegend is not False else "",
            "color": trace.line.color,
            "dash": bool(trace.line.dash),
            "x": [rounded(value) for value in trace.x],
            "y": [rounded(value) for value in trace.y],
        }
        for trace in figure.data
        if "lines" in (trace.mode or "") and trace.hoverinfo != "skip"
    ]
    log, ends = across.type == "log", across.range
    if ends is not None and log:
        ends = [10.0**end for end in ends]
    return {
        "title": title,
        "rows": [
            {
                "series": series,
                "zero": down.rangemode == "tozero",
                "log": down.type == "log",
                "top": down.maxallowed or 0.0,
            }
        ],
        "x": across.title.text or "",
        "xlog": log,
        "ends": ends,
    }


def names_in(charts: Iterable[Mapping[str, Any]], x: str) -> list[str]:
    """Return the columns used by curves."""
    columns = {series["column"] for chart in charts for row in chart["rows"] for series in row["series"]}
    return sorted({"epoch", x} | columns)


def row_of(record: Mapping[str, Any], names: Iterable[str]) -> list[Any]:
    """Return some values of a record, rounded to six digits; the objective to those that F − F* needs."""
    return [rounded(record.get(name), 15 if name == "objective" else 6) for name in names]


def rounded(value: Any, digits: int = 6) -> float | int | None:
    """Return a number rounded to some digits; None if it is not finite."""
    if isinstance(value, int | np.integer):
        return int(value)
    return None if value is None or not math.isfinite(value) else float(f"{value:.{digits}g}")
