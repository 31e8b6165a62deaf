"""``fmviz predict``: apply a model saved by ``fmviz fit`` to another file."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fmviz.cli._terminal import READING, declare, read_source, to_stderr

if TYPE_CHECKING:
    import numpy as np

    from fmviz.lab.saved_model import SavedModel
    from fmviz.tables.source import Source

HELP = "predict with a model saved by fmviz fit"


add = partial(
    declare,
    {
        "": {
            "model": {"metavar": "MODEL", "help": "model.npz, or its folder"},
            "data": {
                "metavar": "DATA",
                "help": "a file with the same columns or features as the training data",
            },
            "--output": {"type": Path, "metavar": "FILE", "help": "a CSV file (default: the terminal)"},
            **READING,
        }
    },
)


def run(arguments: argparse.Namespace) -> int:
    """Write a prediction for every row as CSV, and notes to stderr."""
    import numpy as np
    import pandas as pd

    from fmviz.figures.tabular import defused
    from fmviz.lab.files import expanded
    from fmviz.lab.saved_model import SavedModel

    place = expanded(arguments.model)
    model = SavedModel.load(place / "model.npz" if place.is_dir() else place)
    read = arguments.read if model.base == "auto" else [f"base={model.base}", *arguments.read]
    source, name = read_source(arguments.data, read, arguments.no_limits)
    scores, notes = model.scores(_features(source, model, name), source.reading)
    columns = model.target.in_columns(model.decoded(scores), model.probability(scores))
    table = pd.DataFrame(columns).rename(columns=defused).map(defused)
    table.insert(0, "row", np.arange(1, len(table) + 1))
    # The stream ends lines as the system does; pandas would, too.
    table.to_csv(arguments.output or sys.stdout, index=False, lineterminator="\n")
    for note in (*source.notes, *notes, *_judged(source, model, scores)):
        to_stderr(note)
    return 0


def _features(source: Source, model: SavedModel, name: str) -> Any:
    """Return the table or features of a file; raises ValueError if they do not match the model."""
    if model.encoder is not None:
        if source.table is None:
            raise ValueError(f"{name} is a libsvm file, but the model was fitted to a table.")
        return source.table
    d = len(model.feature_names)
    if source.X is None:
        raise ValueError(f"{name} is a table, but the model was fitted to {d:,} features; use a libsvm file.")
    X = source.X
    if X.shape[1] > d:
        raise ValueError(f"{name} has {X.shape[1]:,} features, but the model was fitted to {d:,}.")
    X.resize(X.shape[0], d)
    return X


def _judged(source: Source, model: SavedModel, scores: np.ndarray) -> list[str]:
    """Return a sentence on the prediction errors if the table has the target."""
    import numpy as np

    from fmviz.metrics import METRICS, Predictions, measured

    target = model.target
    table = source.columns
    # Targets of fits to other features than a file's have no reader.
    readable = target.parts or target.reader is not None
    if not readable or not all(name in table for name in target.names):
        return []
    notes = target.unknown(table)
    y = target.encode(table, source.reading, notes)
    known = ~np.isnan(y.reshape(len(y), -1)).any(axis=1)
    known &= ~np.isnan(scores.reshape(len(y), -1)).any(axis=1)
    if not known.any():
        return notes
    y, f = y[known], scores[known]
    said = f"{target.name} {'are' if target.parts else 'is'} known in {len(y):,} of these rows"
    each = [Predictions(replace(target.engine, values=y), f, model.probability(f))]
    if target.task == "regression":
        # The errors of several targets are in different units.
        truth, scores = (target.decode(values).reshape(len(y), -1).T for values in (y, f))
        each = [
            Predictions(replace(target.engine, values=own), g, loss=model.criterion)
            for own, g in zip(truth, scores, strict=True)
        ]
    figures = [measured(known.target.kind, known) for known in each]
    words = (
        f"{METRICS[name].label} {', '.join(f'{values[name]:.5g}' for values in figures)}"
        for name in figures[0]
    )
    return [*notes, f"{said}: {', '.join(words)}."]
