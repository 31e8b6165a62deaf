"""Table of the columns of an uploaded file, in which their types can be corrected."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import streamlit as st

from fmviz.tables.kinds import Column
from fmviz.tables.recipe import Choice, Recipe
from fmviz.ui.settings.state import Settings, Text

KIND_WORDS = {
    "number": "number",
    "word": "category",
    "yes_no": "yes or no",
    "date": "date",
    "text": "text",
    "ignored": "leave out",
}
MISSING_WORDS = {"drop": "leave the row out", "impute": "fill in", "mark": "fill in and mark"}
_BASE = "fmviz:data:columns_edited"
_HEIGHT = 12


@dataclass(frozen=True)
class Corrections(Text):
    """A setting that holds what was corrected: ``{column: [kind, missing]}`` as JSON text, or empty."""

    def check(self, value: Any) -> str:
        """Return the text in its canonical form, or raise ValueError."""
        text = super().check(value)
        if not text:
            return ""
        try:
            corrections = {
                str(name): Choice(str(name), *map(str, values))  # type: ignore[arg-type]
                for name, values in json.loads(text).items()
            }
        except (AttributeError, TypeError, json.JSONDecodeError):
            raise ValueError(f"{self.name} = {text[:60]!r} holds no corrections of columns.") from None
        return _text({name: (choice.kind, choice.missing) for name, choice in corrections.items()})


def _text(corrections: Mapping[str, tuple[str, str]]) -> str:
    return json.dumps(corrections, ensure_ascii=False, separators=(",", ":")) if corrections else ""


def choices(corrections: str) -> list[Choice]:
    """Return the choices that corrections hold."""
    given = json.loads(corrections) if corrections else {}
    return [Choice(name, *values) for name, values in given.items()]


def corrections_of(first: Recipe, wanted: Recipe) -> str:
    """Return the corrections that make a recipe from the first one."""
    at_first = {column.name: column for column in first.columns}
    return _text(
        {
            column.name: (column.kind, column.missing)
            for column in wanted.columns
            if column != at_first.get(column.name)
        }
    )


def edit_columns(settings: Settings, first: Recipe, columns: tuple[Column, ...]) -> None:
    """Draw the table; what is changed in it goes to the setting ``columns``."""
    # The editor keeps its edits by itself, and adds them to the table that it is given. So it gets the same
    # table until the setting changes by something else.
    about = (settings["file"], first.reading)
    base = st.session_state.get(_BASE)
    if base is None or base["about"] != about or base["present"] != settings["columns"]:
        number = 0 if base is None else base["number"] + 1
        base = {
            "about": about,
            "begin": settings["columns"],
            "present": settings["columns"],
            "number": number,
        }
        st.session_state[_BASE] = base
    begin = first.corrected(choices(base["begin"]))
    table = _table(begin, columns, settings["target"])
    key = f"data_columns_{base['number']}"

    def store() -> None:
        edits = st.session_state[key]["edited_rows"]
        changed = list(begin.columns)
        for row, cells in edits.items():
            now = changed[int(row)]
            kind = _key(KIND_WORDS, cells.get("Use as"), now.kind)
            missing = _key(MISSING_WORDS, cells.get("If missing"), now.missing)
            changed[int(row)] = Choice(now.name, kind, missing)  # type: ignore[arg-type]
        base["present"] = corrections_of(first, replace(begin, columns=tuple(changed)))
        settings.set(columns=base["present"])

    if not settings.shows("columns", "The columns"):
        return
    st.data_editor(
        table,
        key=key,
        on_change=store,
        hide_index=True,
        num_rows="fixed",
        disabled=settings.locks("columns") or ["Column", "Different", "Missing", "Examples", "Note"],
        height=35 * (min(len(table), _HEIGHT) + 1) + 3,
        column_config={
            "Column": st.column_config.TextColumn(width=150, pinned=True),
            "Use as": st.column_config.SelectboxColumn(
                options=list(KIND_WORDS.values()),
                required=True,
                width=110,
                help="A number is one feature; a category one of 0 and 1 for each of its words; a date "
                "becomes year, month, weekday and hour; a text is the words in it.",
            ),
            "Missing": st.column_config.NumberColumn(
                format="localized", width=80, help="Rows without a value in this column."
            ),
            "If missing": st.column_config.SelectboxColumn(
                options=list(MISSING_WORDS.values()),
                required=True,
                width=140,
                help="Filled in, a number is the mean and a category none of its words. Marked, a feature "
                "of 0 and 1 says where it was missing: a level of its own.",
            ),
            "Different": st.column_config.NumberColumn(
                format="localized", width=80, help="How many different values there are."
            ),
            "Examples": st.column_config.TextColumn(width=240),
            "Note": st.column_config.TextColumn(width=360),
        },
        alt="The columns of the file: how each is used, what is missing, and what becomes of that.",
    )


def _table(recipe: Recipe, columns: tuple[Column, ...], target: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "Column": [column.name for column in columns],
            "Use as": [KIND_WORDS[column.kind] for column in recipe.columns],
            "Missing": [column.missing for column in columns],
            "If missing": [MISSING_WORDS[column.missing] for column in recipe.columns],
            "Different": [column.different for column in columns],
            "Examples": [column.examples for column in columns],
            "Note": ["The target." if column.name == target else _note(column) for column in columns],
        }
    )


def _note(column: Column) -> str:
    """Return how a column was read, and what could be read in another way."""
    return " ".join(filter(None, (column.note, column.question)))


def _key(words: Mapping[str, str], word: str | None, present: str) -> str:
    return next((key for key, label in words.items() if label == word), present)
