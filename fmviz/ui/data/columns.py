"""Editable table of the columns of an uploaded file and their types."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import streamlit as st

from fmviz.tables.kinds import Column
from fmviz.tables.recipe import Choice, Recipe
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings, Text

KIND_WORDS = {
    "number": "number",
    "word": "category",
    "yes_no": "yes or no",
    "date": "date",
    "pair": "two numbers",
    "answers": "several answers",
    "text": "text",
    "ignored": "leave out",
}
MISSING_WORDS = {"drop": "leave the row out", "impute": "fill in", "mark": "fill in and mark"}
_BASE = "fmviz:data:columns_edited"
_HEIGHT = 12


@dataclass(frozen=True)
class Corrections(Text):
    """A setting for corrections: ``{column: [kind, missing]}`` as JSON text, or empty."""

    def check(self, value: Any) -> str:
        """Return the text in canonical form, or raise ValueError."""
        text = super().check(value)
        try:
            return _text(choices(text))
        except (AttributeError, TypeError, json.JSONDecodeError):
            raise ValueError(f"{self.name} = {text[:60]!r} is not a set of column corrections.") from None


def _text(corrections: Iterable[Choice]) -> str:
    given = {choice.name: (choice.kind, choice.missing) for choice in corrections}
    return json.dumps(given, ensure_ascii=False, separators=(",", ":")) if given else ""


def choices(corrections: str) -> list[Choice]:
    """Return the choices in corrections."""
    given = json.loads(corrections) if corrections else {}
    return [Choice(name, *map(str, values)) for name, values in given.items()]  # type: ignore[arg-type]


def corrections_of(first: Recipe, wanted: Recipe) -> str:
    """Return the corrections that turn the first recipe into the second."""
    at_first = set(first.columns)
    return _text(choice for choice in wanted.columns if choice not in at_first)


# Labels of the answers to each question, with the settings they make.
_ANSWERS: dict[str, dict[str, dict[str, str]]] = {
    "dates": {"Day first": {"dates": "day"}, "Month first": {"dates": "month"}},
    "header": {"It is a row": {"header": "no"}, "It names the columns": {"header": "yes"}},
    "decimal": {"Decimal point": {"decimal": "point"}, "Decimal comma": {"decimal": "comma"}},
}


def ask(settings: Settings, first: Recipe, columns: tuple[Column, ...]) -> None:
    """Draw a question with its answers for each ambiguity of the file."""
    reading = first.reading
    if reading.kind == "table" and reading.header == "no" and settings["header"] == "auto":
        sentence = "The first line contains values; it was read as a row, and columns are numbered."
        question(settings, "header", sentence, _ANSWERS["header"])
    asked = {column.option: column for column in columns if column.question}
    for option, column in asked.items():
        name, _, value = option.partition("=")
        if name == "words" or (name != "missing" and settings[name] != "auto") or settings.locks(name):
            continue
        others = sum(other.option == option for other in columns) - 1
        more = f" So {'is' if others == 1 else 'are'} {others:,} more." if others else ""
        missing = ", ".join(filter(None, (settings["missing"], value)))
        answers = _ANSWERS.get(name) or {f"{value} is a missing value": {"missing": missing}}
        question(settings, option, plain(column.question + more), answers)
    few = [column.name for column in columns if column.option == "words"]
    few = [name for name in few if name != settings["target"]]
    if few and settings.shows("columns") and not settings.locks("columns"):
        _ask_for_words(settings, first, few)


def _ask_for_words(settings: Settings, first: Recipe, few: list[str]) -> None:
    """Draw the question which columns with few distinct integers are categories."""
    key = f"data_words_{settings['file'][:8]}"
    chosen = first.corrected(choices(settings["columns"]))
    st.session_state[key] = [c.name for c in chosen.columns if c.name in few and c.kind == "word"]

    def store() -> None:
        now = st.session_state[key]
        changed = [
            replace(c, kind="word" if c.name in now else "number") for c in chosen.columns if c.name in few
        ]
        settings.set(columns=corrections_of(first, chosen.corrected(changed)))

    with st.container(border=True, horizontal=True, vertical_alignment="center", key="data_ask_words"):
        st.markdown(
            ":material/help: These columns contain few distinct integers. Which of them are codes of "
            "categories?",
            width="stretch",
        )
        st.pills(
            "Categories",
            few,
            selection_mode="multi",
            key=key,
            format_func=plain,
            on_change=store,
            label_visibility="collapsed",
        )


def question(settings: Settings, name: str, sentence: str, answers: Mapping[str, Mapping[str, str]]) -> None:
    """Draw a question and a button for each answer."""
    with st.container(border=True, horizontal=True, vertical_alignment="center", key=f"data_ask_{name}"):
        st.markdown(f":material/help: {sentence}", width="stretch")
        for place, (label, answer) in enumerate(answers.items()):
            st.button(
                plain(label), key=f"data_ask_{name}_{place}", on_click=settings.set, kwargs=dict(answer)
            )


def edit_columns(settings: Settings, first: Recipe, columns: tuple[Column, ...]) -> None:
    """Draw the table; edits go to the setting ``columns``."""
    # The editor keeps its edits and applies them to its input table, which must therefore stay the same until
    # the setting changes from elsewhere.
    about = (settings["file"], first.reading, first.group)
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
    target = settings["target"]
    table = pd.DataFrame(
        {
            "Column": [column.name for column in columns],
            "Use as": [KIND_WORDS[column.kind] for column in begin.columns],
            "Examples": [column.examples for column in columns],
            "Note": [f"The target. {c.note}".strip() if c.name == target else c.note for c in columns],
            "Missing": [column.missing for column in columns],
            "If missing": [MISSING_WORDS[column.missing] for column in begin.columns],
            "Different": [column.different for column in columns],
        }
    )
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
                help="A number is one feature; a category one binary feature per level; a date "
                "becomes year, month, weekday and hour; a text becomes its words.",
            ),
            "Missing": st.column_config.NumberColumn(
                format="localized", width=80, help="Rows without a value in this column."
            ),
            "If missing": st.column_config.SelectboxColumn(
                options=list(MISSING_WORDS.values()),
                required=True,
                width=140,
                help="Filling in uses the mean of a number and no level of a category. Marking adds a binary "
                "feature for missing values.",
            ),
            "Different": st.column_config.NumberColumn(
                format="localized", width=80, help="Number of distinct values."
            ),
            "Examples": st.column_config.TextColumn(width=190),
            "Note": st.column_config.TextColumn(width=290),
        },
        alt="Columns of the file with type, missing values and their treatment.",
    )


def _key(words: Mapping[str, str], word: str | None, present: str) -> str:
    return next((key for key, label in words.items() if label == word), present)
