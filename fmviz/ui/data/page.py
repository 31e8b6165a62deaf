"""The page Your data: upload, check, encode, train."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from fmviz.engine.memory import available_bytes, in_words
from fmviz.engine.models import SharedBasis
from fmviz.engine.settings import ParamSpec
from fmviz.lab.background.task import TaskView
from fmviz.lab.background.tasks import TooManyJobsError, manager
from fmviz.lab.background.thinned import EXACT_FEATURES
from fmviz.lab.datasets import DATASETS
from fmviz.lab.experiment import Experiment, suggested
from fmviz.lab.importing import import_upload
from fmviz.lab.quotas import uploads_limit
from fmviz.lab.typography import duration
from fmviz.lab.uploads import library
from fmviz.lab.uploads.example import example
from fmviz.lab.uploads.library import Profile, Upload
from fmviz.lab.uploads.size import Size
from fmviz.tables.encoder import NUMBERS
from fmviz.tables.kinds import Column
from fmviz.tables.limits import UPLOADS
from fmviz.tables.recipe import SCALINGS, Choice, Recipe, first_recipe
from fmviz.tables.source import CHOICES, Reading
from fmviz.tables.target import TASKS, ascending
from fmviz.ui import navigation, session_uploads, shell, upload_quota, widgets
from fmviz.ui.data import columns, strengths
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Setting, Settings, Text
from fmviz.ui.train.settings import train_query
from fmviz.ui.watching import done, failure

_READING = tuple(field.name for field in fields(Reading) if field.name != "cells")
_HELP = {
    "kind": "What the file is.",
    "encoding": "How its bytes stand for letters. Choose another if words look wrong.",
    "delimiter": "What divides the columns.",
    "header": "Whether the first line names the columns.",
    "decimal": "What divides a number from its decimals; the other sign then divides thousands.",
    "lines": "Lines with more fields than there are columns are an error, or left out and counted.",
    "dates": "What comes first in dates such as 05/03/2020.",
    "base": "The index of the first feature of a libsvm file.",
}
_WORDS = {
    "utf-8": "UTF-8",
    "utf-16": "UTF-16",
    "cp1252": "Windows, western (cp1252)",
    "cp1250": "Windows, central European (cp1250)",
    "cp1251": "Windows, Cyrillic (cp1251)",
    "koi8_r": "Cyrillic (KOI8-R)",
    "mac_roman": "Mac OS Roman",
    "shift_jis": "Japanese (Shift JIS)",
    "gb18030": "Chinese (GB 18030)",
    "big5": "Chinese (Big5)",
    "euc_kr": "Korean (EUC-KR)",
    "table": "a table (CSV or TSV)",
    "libsvm": "libsvm",
    "parquet": "Parquet",
    "all": "an error",
    "fitting": "left out",
}
_LONGEST_CORRECTIONS = 6_000
TABLE: tuple[Setting, ...] = (
    Text("file", help="The hash of the file that is looked at."),
    Text("title", "", 80, help="What the data are called."),
    Text(
        "paste",
        help="A table, with the names of its columns in the first line; copied from a spreadsheet, say.",
    ),
    *(
        ParamSpec(name, "choice", choices[0], choices=choices, help=_HELP[name])
        for name, choices in CHOICES.items()
    ),
    ParamSpec("skip", "int", 0, 0, 1_000, help="So many lines before the table are left out."),
    Text("missing", help="Words that stand for missing values, separated by commas."),
    columns.Corrections("columns", limit=_LONGEST_CORRECTIONS, help="What was corrected about the columns."),
    Text("target", help="The column that the model predicts."),
    ParamSpec(
        "task",
        "choice",
        "auto",
        choices=TASKS,
        help="A number, one class against all others, every class, or classes in an order, such as ratings. "
        "Auto takes words, and two different values, for classes.",
    ),
    Text("positive", help="This class is +1; all others are −1."),
    Text(
        "also", help="Further columns that are predicted with it, separated by tabs: numbers, or yes and no."
    ),
    Text("order", help="Classes in an order, ascending, separated by commas; by size or letters without it."),
    ParamSpec(
        "logarithm",
        "bool",
        False,
        help="Fits to the logarithm of a positive number, in which errors are shares of it; predictions are "
        "told in its own unit.",
    ),
    ParamSpec(
        "scaling",
        "choice",
        "standard",
        choices=SCALINGS,
        help="Regularizers weigh features by their scale: without scaling, one in large units costs less.",
    ),
    ParamSpec(
        "numbers",
        "choice",
        "auto",
        choices=NUMBERS,
        help="A curve follows a number up and down; a straight line rises or falls. Auto takes what predicts "
        "better.",
    ),
    ParamSpec(
        "rare",
        "int",
        1,
        1,
        1_000,
        help="Words in fewer rows than this share one feature, “(other)”; 1 keeps all.",
    ),
    ParamSpec(
        "rank", "int", 10, 1, 200, symbol="k", help="Columns of P; more can be told apart, and cost more."
    ),
    ParamSpec(
        "validation",
        "float",
        0.25,
        0,
        0.9,
        help="The share of rows kept out of training and used to validate.",
    ),
    ParamSpec(
        "outputs",
        "choice",
        "each",
        choices=("each", "shared"),
        help="Classes, labels or targets either have a machine each, with factors of its own, or are fitted "
        "together on a few bases that all of them share.",
    ),
    *strengths.TABLE,
)
PARTS = ("upload", "use_paste", "example", "other", "train", "read", "keep", *strengths.PARTS)
_EXPERT = ("kind", "skip", "scaling", "rare")
_UPLOAD = "fmviz:data:uploads"
_REFUSED = "fmviz:data:refused"
_ROWS = 8


def render() -> None:
    """Draw the page."""
    settings = Settings("data", TABLE, parts=PARTS, expert=_EXPERT, unread=("dataset",), gone=strengths.GONE)
    linked = settings.read_url()
    with shell.page("Your data", settings):
        shell.heading(
            settings,
            "Your data",
            "Upload a table, say what is to be predicted, and see which interactions matter in it. The file "
            "stays on the computer that serves this page.",
        )
        if settings["file"]:
            _file(settings, linked)
        else:
            _bring(settings)
        draw_shelf(settings, open_set)


# ---------------------------------------------------------------------------------------------- bringing


def _bring(settings: Settings) -> None:
    upload_quota.of_session().bring("", b"")
    if (refused := st.session_state.get(_REFUSED)) is not None:
        st.error(plain(refused), icon=":material/block:")
    if settings.shows("example", "Example"):
        with st.container(border=True, horizontal=True, vertical_alignment="center", key="data_first"):
            st.markdown("First time here? See it with 20,000 flights from New York: which of them were late?")
            widgets.action(
                settings,
                "example",
                "Try the example",
                icon=":material/flight_takeoff:",
                on_click=_example,
                args=(settings,),
            )
    left, right = st.columns(2, gap="large")
    with left:
        _uploader(settings)
    with right:
        widgets.control(
            settings,
            "paste",
            st.text_area,
            "Or paste a table",
            height=132,
            placeholder="age,town,bought\n34,Bonn,yes\n51,Kiel,no",
        )
        widgets.action(
            settings,
            "use_paste",
            "Use this table",
            icon=":material/content_paste_go:",
            on_click=lambda: _take(settings, settings["paste"].encode(), "Pasted table"),
        )


def _uploader(settings: Settings) -> None:
    label = "A file: CSV, TSV, libsvm or Parquet, optionally gzipped"
    if not settings.shows("upload", label):
        return
    number = st.session_state.setdefault(_UPLOAD, 0)
    st.file_uploader(
        label,
        key=f"data_upload_{number}",
        max_upload_size=int(UPLOADS.file) // 1_000_000,
        disabled=settings.locks("upload"),
        on_change=_uploaded,
        args=(settings, f"data_upload_{number}"),
    )
    st.caption(str(UPLOADS))
    if (remaining := min(upload_quota.room())) < UPLOADS.file:
        st.warning(
            f"{in_words(max(0, remaining))} more can be uploaded: a session has "
            f"{in_words(upload_quota.SESSION_BYTES)}, and all of this server {in_words(uploads_limit())}.",
            icon=":material/database_off:",
        )


def _uploaded(settings: Settings, key: str) -> None:
    file = st.session_state.get(key)
    if file is not None:
        st.session_state[_UPLOAD] += 1
        _take(settings, upload_quota.taken(file), file.name)


def _take(settings: Settings, data: bytes, name: str, **changes: Any) -> None:
    """Look at a file from here on."""
    brought = upload_quota.of_session()
    try:
        file = library.file_of(data)
        if (refused := upload_quota.why_not(len(data))) is not None:
            raise ValueError(refused)
    except ValueError as error:
        st.session_state[_REFUSED] = str(error)
        return
    st.session_state.pop(_REFUSED, None)
    brought.bring(file, data)
    settings.reset()
    settings.set(file=file, title=library.title_of(name), **changes)


def _example(settings: Settings) -> None:
    sample = example()
    word_recipe = Recipe(columns=tuple(Choice(word, "word") for word in sample.words))
    corrections = columns.corrections_of(Recipe(), word_recipe)
    _take(settings, sample.data, sample.name, target=sample.target, columns=corrections, rare=5)


def open_set(settings: Settings, upload: Upload) -> None:
    """Look at the file of a data set again, with all that was decided about it."""
    recipe = upload.recipe
    settings.reset()
    settings.set(
        file=upload.file,
        title=upload.title,
        columns=columns.corrections_of(Recipe(), recipe),
        target=recipe.target,
        task=recipe.task,
        positive=recipe.positive,
        also="\t".join(recipe.also),
        order=", ".join(recipe.order),
        logarithm=recipe.logarithm,
        scaling=recipe.scaling,
        rare=recipe.rare,
        numbers=recipe.numbers,
        **{name: getattr(recipe.reading, name) for name in _READING},
    )


# ----------------------------------------------------------------------------------------------- looking


def _file(settings: Settings, linked: bool) -> None:
    file = settings["file"]
    brought = upload_quota.of_session()
    data = brought.unread(file)
    size = library.size_of_file(file) if data is None else len(data)
    top = st.container(border=True, horizontal=True, vertical_alignment="bottom", key="data_file_box")
    with top:
        widgets.param(settings, "title", "Name")
        st.markdown("" if size is None else in_words(size), width="content")
        widgets.action(
            settings,
            "other",
            "Take another",
            icon=":material/swap_horiz:",
            on_click=settings.reset,
            help="Close this file. Data sets made from it stay.",
        )
    if size is None:
        st.error(
            "The file of this link is not on this computer, or was not used for a week. Upload it again, "
            "and then open the link, which holds what was decided about it.",
            icon=":material/folder_off:",
        )
        return
    reading = Reading(**settings.as_dict(*_READING))
    ready = done(
        f"data:read:{file}:{reading}",
        lambda should_stop: library.profile(file, reading, should_stop, data),
        "Reading.",
        partial(_unreadable, settings),
    )
    if not ready:
        return
    if data is not None:
        brought.keep()
    profile = library.profile(file, reading)
    _adopt(settings, profile)
    first = first_recipe(profile.source, profile.columns)
    recipe = _recipe(settings, first)
    line = f"{settings['target']} · rank {settings['rank']} · {settings['validation']:.0%} for validation"
    with shell.settings_box(
        "data_box", plain(line), folded=strengths.is_started(settings, recipe), border=False
    ):
        st.subheader("Check")
        for note in profile.source.notes:
            st.info(plain(note), icon=":material/info:")
        _first_rows(profile)
        _reading(settings, profile.source.reading, expanded=False)
        draw_aim(settings, profile)
        if profile.columns:
            columns.edit_columns(settings, first, profile.columns)
            _scaling(settings)
        encoded = draw_size(settings, recipe)
        draw_train(settings, recipe, encoded, top)
    strengths.draw(settings, recipe, encoded is not None, linked)


def _recipe(settings: Settings, first: Recipe) -> Recipe:
    """Return how the file becomes a data set: by the plain rules, but for what was decided."""
    return replace(
        first.corrected(columns.choices(settings["columns"])),
        target=settings["target"],
        task=settings["task"],
        positive=settings["positive"],
        also=tuple(name for name in settings["also"].split("\t") if name and name != settings["target"]),
        order=tuple(word.strip() for word in settings["order"].split(",") if word.strip()),
        logarithm=settings["logarithm"],
        scaling=settings["scaling"],
        rare=settings["rare"],
        numbers=settings["numbers"],
    )


def _adopt(settings: Settings, profile: Profile) -> None:
    """Suggest what nobody has said yet."""
    first = first_recipe(profile.source, profile.columns)
    names = [column.name for column in profile.columns] or [first.target]
    if settings["target"] not in names and first.target:
        settings.set(target=first.target, rare=first.rare)


def _unreadable(settings: Settings, view: TaskView) -> None:
    failure(view)
    st.caption("If it is a table after all, say below how it is to be read; or take another file.")
    _reading(settings, None, expanded=True)


def _first_rows(profile: Profile) -> None:
    source = profile.source
    if source.table is not None:
        head = source.table.head(_ROWS)
        shown = pd.DataFrame({name: head[name].map(_cell) for name in head})
        n = f"{len(source.table):,} rows, {source.table.shape[1]:,} columns"
    else:
        assert source.X is not None
        assert source.y is not None
        rows = [source.X[[i]].tocoo() for i in range(min(_ROWS, source.y.size))]
        lines = [" ".join(f"{j + 1}:{v:.6g}" for j, v in zip(r.coords[1], r.data, strict=True)) for r in rows]
        shown = pd.DataFrame({"target": source.y[: len(rows)], "features": [text[:300] for text in lines]})
        n = f"{source.y.size:,} rows, {source.X.shape[1]:,} features, {source.X.nnz:,} values"
    st.caption(f"The first rows of {n}.")
    st.dataframe(
        shown, hide_index=True, key="data_head", alt="The first rows of the file, as they were read."
    )


def _cell(value: Any) -> str:
    if value is None or value != value:
        return ""
    return str(value)[:200]


def _reading(settings: Settings, reading: Reading | None, *, expanded: bool) -> None:
    """Draw how the file is read; what was detected stands beside "auto"."""
    words = "" if reading is None else f": {_WORDS[reading.kind]}"
    if reading is not None and reading.kind == "table":
        words += f", {_WORDS[reading.encoding]}, {plain(reading.delimiter)}, decimal {plain(reading.decimal)}"
    with st.expander(f"How it is read{words}", icon=":material/tune:", expanded=expanded, key="data_reading"):
        for names in (("kind", "encoding", "delimiter", "header"), ("decimal", "lines", "skip")):
            for column, name in zip(st.columns(4), names, strict=False):
                labels = {value: _WORDS.get(value, value) for value in CHOICES.get(name, ())}
                if reading is not None and "auto" in labels:
                    detected = getattr(reading, name)
                    labels["auto"] = (
                        f"auto: {_WORDS.get(detected, detected)}" if settings[name] == "auto" else "auto"
                    )
                with column:
                    widgets.param(
                        settings,
                        name,
                        {"lines": "Lines that are too long", "skip": "Lines to skip"}.get(name),
                        labels=labels,
                        style="number" if name == "skip" else "select",
                    )


def _scaling(settings: Settings) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", key="data_scaling_box"):
        labels = {"standard": "Mean 0, deviation 1", "range": "From 0 to 1", "none": "As they are"}
        widgets.param(settings, "scaling", "Numbers", labels=labels)
        with st.container(width=330):
            widgets.param(settings, "rare", "Rows a word needs for a feature of its own", style="number")


# More values are hardly levels.
_FEW = 12


def draw_aim(settings: Settings, profile: Profile) -> None:
    """Draw the target, the task and the class to tell from the others."""
    columns = {column.name: column for column in profile.columns}
    with st.container(border=True, key="data_aim"):
        left, middle, right = st.columns([2, 2, 2])
        with left:
            names = list(columns) or [settings["target"]]
            if settings["target"] not in names:
                names = ["", *names]
            widgets.control(
                settings,
                "target",
                st.selectbox,
                "Target",
                names,
                format_func=lambda name: name or "choose a column",
                disabled=not columns,
                then=lambda: settings.set(positive="", task="auto", order="", logarithm=False),
            )
        with middle:
            labels = {
                "auto": "Auto",
                "regression": "A number",
                "binary": "One class against the rest",
                "class": "Classes",
                "ordinal": "Classes in an order",
            }
            widgets.param(settings, "task", "What it is", labels=labels, style="select")
        with right:
            target = columns.get(settings["target"])
            levels = list(target.levels) if target is not None else _classes(profile)
            named = len(levels) == 2 or (target and target.kind == "word" and settings["task"] == "auto")
            if settings["task"] == "ordinal" and len(levels) > 2:
                widgets.control(
                    settings, "order", st.text_input, "In ascending order", placeholder=", ".join(levels[:12])
                )
            elif levels and not settings["also"] and (settings["task"] == "binary" or named):
                given = settings["positive"]
                widgets.control(
                    settings,
                    "positive",
                    st.selectbox,
                    "The class that is +1",
                    ["", *levels] if given in ("", *levels) else ["", given, *levels],
                    format_func=lambda level: (
                        level
                        or (
                            "the later of two"
                            if len(levels) == 2
                            else "each for itself"
                            if settings["task"] == "auto"
                            else "choose a class"
                        )
                    ),
                )
        if target is not None and not settings["also"]:
            _ask_for_order(settings, target)
        if settings["logarithm"] or _positive(settings, profile):
            widgets.param(settings, "logarithm", "Its logarithm")
        if len(columns) > 2 and not settings["positive"]:
            _also(settings, [name for name in columns if name != settings["target"]])


def _ask_for_order(settings: Settings, target: Column) -> None:
    """Ask what a target of a few values is, until somebody has said it."""
    few = 3 <= target.different <= _FEW and target.kind in ("word", "number")
    if settings["task"] != "auto" or settings["positive"] or not few or settings.locks("task"):
        return
    numbers = target.kind == "number"
    levels = ascending(target.levels)
    listed = ", ".join(levels or (sorted(target.levels, key=_size) if numbers else target.levels))

    def take(task: str, order: str = "") -> None:
        settings.set(task=task, order=order)

    with st.container(border=True, horizontal=True, vertical_alignment="center", key="data_order"):
        st.markdown(
            f":material/help: **{plain(target.name)}** has {target.different:,} values: {plain(listed)}. Are "
            "they classes, or is there an order in them?",
            width="stretch",
        )
        st.button("Classes", key="data_order_none", on_click=take, args=("class",))
        st.button(
            "In this order" if levels or numbers else "In an order",
            key="data_order_yes",
            on_click=take,
            args=("ordinal", ", ".join(levels)),
        )
        if numbers:
            st.button("Numbers", key="data_order_numbers", on_click=take, args=("regression",))


def _size(word: str) -> float:
    try:
        return float(word.replace(",", "."))
    except ValueError:
        return float("inf")


def _positive(settings: Settings, profile: Profile) -> bool:
    """Return whether the target is a number that is positive in all rows."""
    if settings["positive"] or settings["task"] not in ("auto", "regression"):
        return False
    if (y := profile.source.y) is not None:
        return bool(y.min() > 0.0) and np.unique(y).size > 2
    return any(column.positive for column in profile.columns if column.name == settings["target"])


def _also(settings: Settings, names: list[str]) -> None:
    """Draw the menu of further targets."""
    if not settings.shows("also", "Further targets"):
        return
    key = f"data_also_{settings['file'][:8]}_{settings['target']}"
    chosen = [name for name in settings["also"].split("\t") if name in names]

    def take() -> None:
        settings.set(also="\t".join(st.session_state[key]))

    st.multiselect(
        "Predict other columns with it",
        names,
        default=chosen,
        key=key,
        placeholder="none",
        disabled=settings.locks("also"),
        on_change=take,
        help="All of them numbers, or all of them yes and no. They are no features then.",
    )


def _classes(profile: Profile) -> list[str]:
    """Return the classes of a libsvm file, unless they are many."""
    y = profile.source.y
    if y is None:
        return []
    values = sorted(set(y.tolist()))
    return [f"{value:.15g}" for value in values] if len(values) <= 50 else []


_MESSAGE = "fmviz:data:told"


def draw_shelf(settings: Settings, open_set: Callable[[Settings, Upload], None]) -> None:
    """Draw the data sets of this session; `open_set` looks at the file of one again."""
    if (message := st.session_state.get(_MESSAGE)) is not None:
        widgets.dismissible("data", message, _MESSAGE)
    uploads = [upload for upload in map(library.find, session_uploads.mine()) if upload is not None]
    if not uploads:
        return
    st.subheader("My data sets")
    for upload in uploads:
        with st.container(
            border=True, horizontal=True, vertical_alignment="center", key=f"data_set_{upload.name}"
        ):
            st.markdown(
                f"**{plain(upload.title)}** · {upload.rows:,} rows, {upload.features:,} features · "
                f"{in_words(upload.bytes)}",
                width="stretch",
            )
            navigation.page_link(
                navigation.TRAIN,
                train_query(replace(suggested(upload.name), seed=settings["seed"])),
                label="Train",
            )
            st.button(
                "Open",
                icon=":material/edit:",
                key=f"data_open_{upload.name}",
                on_click=open_set,
                args=(settings, upload),
                help="Look at its columns, and encode it in another way.",
            )
            if upload.owner in ("", session_uploads.owner()):
                widgets.confirm_delete(
                    f"data_delete_{upload.name}",
                    f"**{plain(upload.title)}** and its file go for good; links and runs can no longer load "
                    "these data.",
                    partial(_delete, settings, upload),
                )
            else:
                st.button(
                    "Take off the list",
                    icon=":material/playlist_remove:",
                    key=f"data_delete_{upload.name}",
                    on_click=_take_off,
                    args=(settings, upload),
                    help="Only the browser that brought it can delete it.",
                )
    st.caption(
        "These sets are listed in this session alone. Whoever has a link with the name of one can open it; "
        "only the browser that brought it can delete it, and until then it stays on this computer."
    )


def _take_off(settings: Settings, upload: Upload) -> None:
    session_uploads.forget(upload.name)
    if settings["dataset"] == upload.name:
        settings.set(dataset=next(iter(DATASETS)))


def _delete(settings: Settings, upload: Upload) -> None:
    library.delete(upload.name)
    _take_off(settings, upload)
    st.session_state[_MESSAGE] = f"{upload.title} was deleted."


_WANTED = "fmviz:data:wanted"
_EPOCHS = 300
# So many classes are named.
_NAMED = 12
_MANY = {
    "class": ("{n} classes", "each with a machine of its own"),
    "ordinal": ("{n} classes in this order", "a machine for each step between them"),
    "several": ("{n} labels", "each with a machine of its own"),
    "regression": ("{n} numbers, standardised", "a machine for each"),
}
_SHARED = "all on one shared basis"


def draw_size(settings: Settings, recipe: Recipe) -> Size | None:
    """Draw the encoded size; return it, or None where it is not known or cannot be."""
    st.subheader("What it becomes")
    file = settings["file"]
    key = f"data:size:{library.name_of(file, recipe)}"
    ready = done(
        key,
        lambda should_stop: library.sized(file, recipe, should_stop),
        "Counting what this makes.",
        _cannot,
    )
    if not ready:
        return None
    size = library.sized(file, recipe)
    rank = settings["rank"]
    if shared := has_outputs(size) and settings["outputs"] == "shared":
        rank = SharedBasis.suited["rank"]
    needed = 3 * size.bytes_of_X + 4 * size.bytes_of_P(rank)
    figures = (
        ("Rows", f"{size.rows:,}", f"{size.dropped:,} more are left out since a value is missing."),
        ("Features d", f"{size.features:,}", "Columns of X."),
        ("Pairs", f"{size.features * (size.features - 1) // 2:,}", "Interactions that a model may use."),
        ("Non-zeros of X", f"{size.entries:,}", "What an epoch goes through."),
        ("Memory of X", in_words(size.bytes_of_X), "By rows and by columns, as training holds it."),
        (
            f"Memory of {rank:,} bases" if shared else f"Memory of P at rank {rank}",
            in_words(size.bytes_of_P(rank)),
            "8 bytes for each of d × k entries.",
        ),
    )
    with st.container(horizontal=True, gap="medium", key="data_figures"):
        for label, value, help_ in figures:
            st.metric(plain(label), value, help=plain(help_), width="content")
    picture = (
        "exact, cell by cell"
        if size.features <= EXACT_FEATURES
        else f"in tiles, each of several features, since d is above {EXACT_FEATURES:,}"
    )
    if size.task == "binary":
        positives = size.counts[1]
        goal = (
            f"Two classes: **{plain(size.labels[1])}** is +1 in {positives:,} rows "
            f"({positives / size.rows:.0%}), **{plain(size.labels[0])}** is −1."
        )
    elif has_outputs(size):
        labels = [f"**{plain(name)}**" for name in size.labels]
        if size.counts:
            labels = [f"{words} ({n:,})" for words, n in zip(labels, size.counts, strict=True)]
        more = f" and {len(labels) - _NAMED:,} more" if len(labels) > _NAMED else ""
        goal = f"{plain(_outputs(settings, size))}: {', '.join(labels[:_NAMED])}{more}."
    else:
        goal = "A number, standardised: an error of 1 is one standard deviation."
    lost = f" {size.dropped:,} rows are left out since a value is missing." if size.dropped else ""
    # What an epoch on a shared basis takes depends on the bases that are there.
    span = "" if shared else f" {_EPOCHS} epochs take at most {duration(size.seconds(rank, _EPOCHS))}."
    st.markdown(f"{goal}{lost} The heatmap is {picture}.{span}")
    if needed > available_bytes():
        st.warning(
            f"Training needs about {in_words(needed)}, and {in_words(available_bytes())} are free. Take a "
            "sample of the rows, or leave columns out.",
            icon=":material/memory:",
        )
    if size.features < 2:
        st.warning(
            "A single feature has none to interact with. Use more columns.", icon=":material/lightbulb:"
        )
    for note in size.notes[:8]:
        st.caption(plain(note))
    with st.expander("Features by column", icon=":material/view_column:"):
        st.dataframe(
            pd.DataFrame(
                {
                    "Column": [part.name for part in size.parts],
                    "Encoded as": [part.kind for part in size.parts],
                    "Features": [part.features for part in size.parts],
                    "Non-zeros": [part.entries for part in size.parts],
                }
            ),
            hide_index=True,
            key="data_parts",
            height=35 * (min(len(size.parts), 10) + 1) + 3,
            alt="How many features and non-zeros each column of the file becomes.",
        )
    return size


def has_outputs(size: Size) -> bool:
    """Return whether there is more than one output to predict."""
    return size.task in _MANY and bool(size.labels)


def _outputs(settings: Settings, size: Size) -> str:
    many, how = _MANY[size.task]
    return f"{many.format(n=len(size.labels))}, {_SHARED if settings['outputs'] == 'shared' else how}"


def _cannot(view: TaskView) -> None:
    failure(view)
    st.caption("Change the target, the columns or the rule for missing values above; or upload another file.")


def draw_train(settings: Settings, recipe: Recipe, size: Size | None, top: DeltaGenerator) -> None:
    """Draw the way to a first model; at the `top` of the page, straight to what it says."""
    if settings.shows_any("rank", "validation", "outputs", "train", "keep"):
        st.subheader("Train")
    several = size is not None and has_outputs(size)
    model = SharedBasis.name if several and settings["outputs"] == "shared" else None
    with st.container(horizontal=True, vertical_alignment="bottom", key="data_first"):
        # λ decides how many bases are shared.
        if model is None:
            with st.container(width=220):
                widgets.param(settings, "rank", "Rank $k$", style="number")
        with st.container(width=220):
            widgets.param(settings, "validation", "Validation share", style="number")
        if several:
            widgets.param(
                settings,
                "outputs",
                "Several outputs",
                labels={"each": "A machine for each", "shared": "One shared basis"},
            )
    name = library.name_of(settings["file"], recipe)
    with top:
        widgets.action(
            settings,
            "read",
            "Train, and read the pairs in words",
            icon=navigation.INTERACTIONS.icon,
            type="primary",
            disabled=size is None,
            on_click=_want,
            args=(name, "read"),
            help="With sensible defaults; opens the page Interactions.",
        )
    with st.container(horizontal=True, key="data_actions"):
        widgets.action(
            settings,
            "train",
            "Train with sensible defaults",
            icon=":material/play_arrow:",
            type="primary",
            disabled=size is None,
            on_click=_want,
            args=(name, "train"),
            help="With a strength that these data suggest; opens the page Train.",
        )
        widgets.action(
            settings,
            "keep",
            "Keep as a data set",
            icon=":material/bookmark_add:",
            disabled=size is None,
            on_click=_want,
            args=(name, "keep"),
            help="For the data set menu of this session: sweeps, comparisons and all other pages.",
        )
    st.caption(
        "Means, deviations and words are those of all rows that are kept, so that runs with other splits "
        "and seeds have the same features; the target does not enter them."
    )
    wanted, what = st.session_state.get(_WANTED, ("", ""))
    if wanted == name and size is not None:
        # Beside the button that was pressed.
        with top if what == "read" else st.container():
            _carry_out(settings, recipe, name, what, model)


def _want(name: str, what: str) -> None:
    st.session_state[_WANTED] = (name, what)


def _carry_out(settings: Settings, recipe: Recipe, name: str, what: str, model: str | None) -> None:
    """Enter the data set with strengths for a model, and go on."""
    file, title, owner = settings["file"], settings["title"], session_uploads.owner()

    def failed(view: TaskView) -> None:
        st.session_state.pop(_WANTED, None)
        _cannot(view)

    def enter(should_stop: Callable[[], bool]) -> Iterator[str]:
        before = library.find(name)
        if before is None or not before.has_strengths(model):
            for trial in import_upload(file, recipe, title, should_stop, owner, model):
                yield trial.message

    if not done(f"data:enter:{name}:{title}:{model}", enter, "Encoding, and trying strengths.", failed):
        return
    st.session_state.pop(_WANTED, None)
    session_uploads.remember(name)
    if what != "keep":
        rank = {"rank": settings["rank"]} if model is None else {}
        own = {"validation": settings["validation"], "seed": settings["seed"]}
        experiment = replace(suggested(name, model or Experiment.model), **rank, **own)
        if what == "train":
            st.switch_page(navigation.TRAIN.script, query_params=train_query(experiment))
        try:
            job = manager().start(experiment, owner, browser=owner)
        except TooManyJobsError as error:
            st.error(plain(error), icon=":material/block:")
            return
        st.switch_page(navigation.INTERACTIONS.script, query_params={"run": job.id})
    st.session_state[_MESSAGE] = f"{library.title_of(title)} is in the data set menu."
    settings.set(dataset=name)
    st.rerun()
