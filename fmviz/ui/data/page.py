"""The page Your data: upload, check, encode, train."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from fmviz.engine.memory import in_words
from fmviz.engine.settings import ParamSpec
from fmviz.lab.datasets import DATASETS
from fmviz.lab.quotas import uploads_limit
from fmviz.lab.tables.limits import UPLOADS
from fmviz.lab.tables.recipe import SCALINGS, Choice, Recipe, first_recipe
from fmviz.lab.tables.source import CHOICES, Reading
from fmviz.lab.tables.target import TASKS
from fmviz.lab.uploads import library
from fmviz.lab.uploads.example import example
from fmviz.lab.uploads.library import Profile, Upload
from fmviz.ui import navigation, session_uploads, shell, upload_quota, widgets
from fmviz.ui.data import columns, strengths
from fmviz.ui.data.aim import draw_aim
from fmviz.ui.data.size import MESSAGE, draw_size, draw_train, train_query
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Setting, Settings, Text
from fmviz.ui.watching import done

_READING = tuple(field.name for field in fields(Reading))
_HELP = {
    "kind": "What the file is.",
    "encoding": "How its bytes stand for letters. Choose another if words look wrong.",
    "delimiter": "What divides the columns.",
    "header": "Whether the first line names the columns.",
    "decimal": "What divides a number from its decimals; the other sign then divides thousands.",
    "lines": "Lines with more fields than there are columns are an error, or left out and counted.",
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
        _own_sets(settings)


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
    found = example()
    told = Recipe(columns=tuple(Choice(word, "word") for word in found.words))
    corrections = columns.corrections_of(Recipe(), told)
    _take(settings, found.data, found.name, target=found.target, columns=corrections, rare=5)


def open_set(settings: Settings, one: Upload) -> None:
    """Look at the file of a data set again, with all that was decided about it."""
    recipe = one.recipe
    settings.reset()
    settings.set(
        file=one.file,
        title=one.title,
        columns=columns.corrections_of(Recipe(), recipe),
        target=recipe.target,
        task=recipe.task,
        positive=recipe.positive,
        also="\t".join(recipe.also),
        order=", ".join(recipe.order),
        logarithm=recipe.logarithm,
        scaling=recipe.scaling,
        rare=recipe.rare,
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
        lambda sentence, details: _unreadable(settings, sentence, details),
    )
    if not ready:
        return
    if data is not None:
        brought.keep()
    profile = library.profile(file, reading)
    _adopt(settings, profile)
    first = first_recipe(profile.source, profile.columns, plain=True)
    recipe = _recipe(settings, first)
    line = f"{settings['target']} · rank {settings['rank']} · {settings['validation']:.0%} for validation"
    with shell.settings_box("data_box", plain(line), folded=strengths.begun(settings, recipe), border=False):
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
    )


def _adopt(settings: Settings, profile: Profile) -> None:
    """Suggest what nobody has said yet."""
    first = first_recipe(profile.source, profile.columns)
    names = [one.name for one in profile.columns] or [first.target]
    if settings["target"] not in names and first.target:
        # Links tell how columns differ from the plain rules, so that those of earlier versions stay the same.
        plainly = first_recipe(profile.source, profile.columns, plain=True)
        told = settings["columns"] or columns.corrections_of(plainly, first)
        told = told if len(told) <= _LONGEST_CORRECTIONS else ""
        settings.set(target=first.target, rare=first.rare, columns=told)


def _unreadable(settings: Settings, sentence: str, details: str) -> None:
    st.error(plain(sentence), icon=":material/block:")
    if details:
        with st.expander("Details", icon=":material/info:"):
            st.code(details, language=None, wrap_lines=True)
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
        told = [" ".join(f"{j + 1}:{v:.6g}" for j, v in zip(r.coords[1], r.data, strict=True)) for r in rows]
        shown = pd.DataFrame({"target": source.y[: len(rows)], "features": [text[:300] for text in told]})
        n = f"{source.y.size:,} rows, {source.X.shape[1]:,} features, {source.X.nnz:,} values"
    st.caption(f"The first rows of {n}.")
    st.dataframe(
        shown, hide_index=True, key="data_head", alt="The first rows of the file, as they were read."
    )


def _cell(value: Any) -> str:
    if value is None or value != value:
        return ""
    return str(value)[:200]


def _reading(settings: Settings, found: Reading | None, *, expanded: bool) -> None:
    """Draw how the file is read; what was detected stands beside "auto"."""
    words = "" if found is None else f": {_WORDS[found.kind]}"
    if found is not None and found.kind == "table":
        words += f", {_WORDS[found.encoding]}, {plain(found.delimiter)}, decimal {plain(found.decimal)}"
    with st.expander(f"How it is read{words}", icon=":material/tune:", expanded=expanded, key="data_reading"):
        for names in (("kind", "encoding", "delimiter", "header"), ("decimal", "lines", "skip")):
            for column, name in zip(st.columns(4), names, strict=False):
                labels = {value: _WORDS.get(value, value) for value in CHOICES.get(name, ())}
                if found is not None and "auto" in labels:
                    told = getattr(found, name)
                    labels["auto"] = f"auto: {_WORDS.get(told, told)}" if settings[name] == "auto" else "auto"
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


# ------------------------------------------------------------------------------------- sets of this session


def _own_sets(settings: Settings) -> None:
    """Draw the data sets of this session: train, open, delete."""
    if (sentence := st.session_state.get(MESSAGE)) is not None:
        widgets.dismissible("data", sentence, MESSAGE)
    known = map(library.find, session_uploads.mine())
    found = [one for one in known if one is not None]
    if not found:
        return
    st.subheader("My data sets")
    for one in found:
        with st.container(
            border=True, horizontal=True, vertical_alignment="center", key=f"data_set_{one.name}"
        ):
            st.markdown(
                f"**{plain(one.title)}** · {one.rows:,} rows, {one.features:,} features · "
                f"{in_words(one.bytes)}",
                width="stretch",
            )
            navigation.page_link(
                navigation.TRAIN,
                train_query(one.name, settings["seed"]),
                label="Train",
            )
            st.button(
                "Open",
                icon=":material/edit:",
                key=f"data_open_{one.name}",
                on_click=open_set,
                args=(settings, one),
                help="Look at its columns, and encode it in another way.",
            )
            if one.owner in ("", session_uploads.owner()):
                widgets.confirm_delete(
                    f"data_delete_{one.name}",
                    f"**{plain(one.title)}** and its file go for good; links and runs can no longer load "
                    "these data.",
                    partial(_delete, settings, one),
                )
            else:
                st.button(
                    "Take off the list",
                    icon=":material/playlist_remove:",
                    key=f"data_delete_{one.name}",
                    on_click=_take_off,
                    args=(settings, one),
                    help="Only the browser that brought it can delete it.",
                )
    st.caption(
        "These sets are listed in this session alone. Whoever has a link with the name of one can open it; "
        "only the browser that brought it can delete it, and until then it stays on this computer."
    )


def _take_off(settings: Settings, one: Upload) -> None:
    session_uploads.forget(one.name)
    if settings["dataset"] == one.name:
        settings.set(dataset=next(iter(DATASETS)))


def _delete(settings: Settings, one: Upload) -> None:
    library.delete(one.name)
    _take_off(settings, one)
    st.session_state[MESSAGE] = f"{one.title} was deleted."
