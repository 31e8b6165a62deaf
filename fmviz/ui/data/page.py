"""The page Your data: upload, check, encode, train."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from functools import partial
from typing import Any

import streamlit as st

from fmviz.engine.memory import available_bytes, in_words
from fmviz.engine.models import SharedBasis
from fmviz.engine.settings import ParamSpec
from fmviz.lab.background.task import TaskView
from fmviz.lab.background.tasks import manager
from fmviz.lab.datasets import DATASETS
from fmviz.lab.experiment import suggested
from fmviz.lab.importing import import_upload
from fmviz.lab.uploads import library
from fmviz.lab.uploads.library import Profile, Size, Upload
from fmviz.tables.columns import SCALINGS
from fmviz.tables.encoder import NUMBERS, TELLS
from fmviz.tables.kinds import Column, listed
from fmviz.tables.limits import UPLOADS
from fmviz.tables.recipe import Choice, Recipe, first_recipe
from fmviz.tables.source import CHOICES, Reading, Source
from fmviz.tables.target import TASKS
from fmviz.ui import navigation, session_uploads, shell, widgets
from fmviz.ui.data import columns, strengths
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Setting, Settings, Text
from fmviz.ui.train.settings import train_query
from fmviz.ui.watching import failure, results_of

_READING = tuple(field.name for field in fields(Reading))
# Settings with the same name in a recipe.
_RECIPE = ("target", "task", "positive", "logarithm", "scaling", "rare", "numbers", "group", "distinct")
_LOGARITHM: dict[str, Any] = {"auto": "auto", "1": True, "0": False}
_HELP = {
    "kind": "Format of the file.",
    "encoding": "Character encoding. Choose another if text looks garbled.",
    "delimiter": "Column separator.",
    "header": "Whether the first line contains column names.",
    "decimal": "Decimal separator; the other sign then separates thousands.",
    "lines": "Treatment of lines with too many fields: an error, or skipped and counted.",
    "dates": "Order of day and month in dates such as 05/03/2020.",
    "base": "Index of the first feature in a libsvm file.",
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
    "day": "day first",
    "month": "month first",
}
_LONGEST_CORRECTIONS = 6_000
TABLE: tuple[Setting, ...] = (
    Text("file", help="Hash of the file."),
    Text("title", "", 80, help="Name of the data."),
    Text(
        "paste",
        help="A table with column names in the first line, for instance from a spreadsheet.",
    ),
    *(
        ParamSpec(name, "choice", choices[0], choices=choices, help=_HELP[name])
        for name, choices in CHOICES.items()
    ),
    ParamSpec("skip", "int", 0, 0, 1_000, help="Number of lines to skip before the table."),
    Text("missing", help="Codes of missing values, separated by commas."),
    columns.Corrections("columns", limit=_LONGEST_CORRECTIONS, help="Corrected column types."),
    Text("target", help="Column to predict."),
    ParamSpec(
        "task",
        "choice",
        "auto",
        choices=TASKS,
        help="A number, one class against all others, every class, or ordered classes such as ratings. Auto "
        "treats text, or two distinct values, as classes.",
    ),
    Text("positive", help="Class to separate from all others."),
    Text("also", help="Further target columns, separated by tabs: all numbers, or all yes/no."),
    Text(
        "order",
        help="Classes in ascending order, separated by commas; default: numeric or alphabetical order.",
    ),
    ParamSpec(
        "logarithm",
        "choice",
        "auto",
        choices=tuple(_LOGARITHM),
        help="Fits the logarithm of a positive target, for relative errors; predictions are reported in the "
        "original unit. By default, if the target is skewed and validation prefers it.",
    ),
    ParamSpec(
        "scaling",
        "choice",
        "standard",
        choices=SCALINGS,
        help="Penalties depend on the scale of features: without scaling, features with large values are "
        "penalized less.",
    ),
    ParamSpec(
        "numbers",
        "choice",
        "auto",
        choices=NUMBERS,
        help="Curves can rise and fall; straight lines are monotone. By default validation decides.",
    ),
    ParamSpec(
        "distinct",
        "bool",
        True,
        help="Leaves out columns that say the same as an earlier one, which would share its effects. Equal "
        "rows stay on the same side of every split.",
    ),
    ParamSpec(
        "rare",
        "int",
        1,
        1,
        1_000,
        help="Levels with fewer rows share one feature, “(other)”; 1 keeps all levels.",
    ),
    Text(
        "group",
        help="Rows with the same value in this column, such as a date or a person, stay on the same side of "
        "every split. The column is not a feature unless you choose a kind for it in the table above.",
    ),
    ParamSpec(
        "rank", "int", 10, 1, 200, symbol="k", help="Columns of P; more are more expressive and cost more."
    ),
    ParamSpec(
        "validation",
        "float",
        0.0,
        0,
        0.9,
        help="Share of rows kept out of training, for errors that no choice depends on. Strengths and models "
        "are compared by folds of the other rows.",
    ),
    ParamSpec(
        "outputs",
        "choice",
        "each",
        choices=("each", "shared"),
        help="Classes, labels or targets have separate machines with separate factors, or share a few bases "
        "in a joint fit.",
    ),
    *strengths.TABLE,
)
PARTS = ("upload", "use_paste", "example", "other", "keep", *strengths.PARTS)
_EXPERT = ("kind", "skip", "scaling", "rare")
_UPLOAD = "fmviz:data:uploads"
_REFUSED = "fmviz:data:refused"
_ROWS = 8


def render() -> None:
    """Draw the page."""
    settings = Settings("data", TABLE, parts=PARTS, expert=_EXPERT, unread=("dataset",))
    linked = settings.read_url()
    with shell.page("Your data", settings):
        shell.heading(
            settings,
            "Your data",
            "Upload a table, choose the target, and see which interactions matter. The file stays on the "
            "computer that serves this page.",
        )
        if settings["file"]:
            _file(settings, linked)
        else:
            _bring(settings)
        draw_shelf(settings)


# ---------------------------------------------------------------------------------------------- bringing


def _bring(settings: Settings) -> None:
    session_uploads.of_session().bring("", b"")
    if (refused := st.session_state.get(_REFUSED)) is not None:
        st.error(plain(refused), icon=":material/block:")
    if settings.shows("example", "Example"):
        with st.container(border=True, horizontal=True, vertical_alignment="center", key="data_first"):
            st.markdown("First visit? Try a year of hourly bike sharing: when do people ride?")
            widgets.action(
                settings,
                "example",
                "Try the example",
                icon=":material/pedal_bike:",
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
    label = "CSV, TSV, libsvm or Parquet file, optionally gzipped"
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


def _uploaded(settings: Settings, key: str) -> None:
    file = st.session_state.get(key)
    if file is not None:
        st.session_state[_UPLOAD] += 1
        _take(settings, session_uploads.taken(file), file.name)


def _take(settings: Settings, data: bytes, name: str, **changes: Any) -> None:
    """Open a file."""
    brought = session_uploads.of_session()
    try:
        file = library.file_of(data)
        if (refused := session_uploads.why_not(len(data))) is not None:
            raise ValueError(refused)
    except ValueError as error:
        st.session_state[_REFUSED] = str(error)
        return
    st.session_state.pop(_REFUSED, None)
    brought.bring(file, data)
    settings.reset()
    settings.set(file=file, title=library.title_of(name), **changes)


def _example(settings: Settings) -> None:
    sample = library.example()
    words = Recipe(columns=tuple(Choice(word, "word", "impute") for word in sample.words))
    corrections = columns.corrections_of(Recipe(), words)
    about = {"target": sample.target, "columns": corrections, "group": sample.group, "rare": 5}
    _take(settings, sample.data, sample.name, **about)


def open_set(settings: Settings, upload: Upload) -> None:
    """Reopen the file of a data set with its recipe."""
    recipe = upload.recipe
    settings.reset()
    settings.set(
        file=upload.file,
        title=upload.title,
        columns=columns.corrections_of(Recipe(), recipe),
        also="\t".join(recipe.also),
        order=", ".join(recipe.order),
        **{name: getattr(recipe, name) for name in _RECIPE if name != "logarithm"},
        logarithm=next(name for name, value in _LOGARITHM.items() if value == recipe.logarithm),
        **{name: getattr(recipe.reading, name) for name in _READING},
    )


# ----------------------------------------------------------------------------------------------- looking


def _file(settings: Settings, linked: bool) -> None:
    file = settings["file"]
    brought = session_uploads.of_session()
    data = brought.unread(file)
    size = library.size_of_file(file) if data is None else len(data)
    top = st.container(border=True, horizontal=True, vertical_alignment="bottom", key="data_file_box")
    with top:
        widgets.param(settings, "title", "Name")
        st.markdown("" if size is None else in_words(size), width="content")
        widgets.action(
            settings,
            "other",
            "Choose another",
            icon=":material/swap_horiz:",
            on_click=settings.reset,
            help="Closes this file. Data sets created from it are kept.",
        )
    if size is None:
        st.error(
            "The file of this link is not on this computer, or was deleted after a week without use. Upload "
            "it again, then open the link, which contains the settings.",
            icon=":material/folder_off:",
        )
        return
    reading = Reading(**settings.as_dict(*_READING))
    work = partial(library.profile, file, reading, data=data)
    if not _done(f"read:{file}:{reading}", work, "Reading.", partial(_unreadable, settings)):
        return
    if data is not None:
        brought.keep()
    profile = library.profile(file, reading)
    first = first_recipe(profile.source, profile.columns).grouped(settings["group"])
    if settings["target"] not in {column.name for column in profile.columns}:
        # Suggested until a target is chosen.
        settings.set(target=first.target, rare=first.rare)
    # The default rules, with the corrections.
    recipe = replace(
        first.corrected(columns.choices(settings["columns"])),
        also=tuple(name for name in settings["also"].split("\t") if name and name != settings["target"]),
        order=listed(settings["order"]),
        **settings.as_dict(*_RECIPE) | {"logarithm": _LOGARITHM[settings["logarithm"]]},
    )
    with top:
        draw_target(settings, profile)
    if not settings["target"]:
        st.info("Choose the column to predict, next to the button above.", icon=":material/ads_click:")
    line = f"{settings['target']} · rank {settings['rank']}"
    started = manager().get(strengths.task_name(settings, recipe)) is not None
    with shell.settings_box("data_box", plain(line), folded=started, border=False):
        st.subheader("Check")
        _notes(note for note in profile.source.notes if "header=yes" not in note)
        _first_rows(profile.source)
        _reading(settings, profile.source.reading, expanded=False)
        columns.ask(settings, first, profile.columns)
        draw_aim(settings, profile)
        if profile.source.table is not None:
            columns.edit_columns(settings, first, profile.columns)
            with st.container(
                horizontal=True, vertical_alignment="bottom", gap="medium", key="data_scaling_box"
            ):
                enter = {
                    "auto": "Chosen by validation",
                    "line": "Straight lines only",
                    "curve": "With curves",
                }
                widgets.param(settings, "numbers", "Numbers", labels=enter)
                scaled = {"standard": "Mean 0, deviation 1", "range": "From 0 to 1", "none": "As they are"}
                widgets.param(settings, "scaling", "Scaled to", labels=scaled)
                with st.container(width=330):
                    widgets.param(settings, "rare", "Minimum rows per level", style="number")
                widgets.param(settings, "distinct", "Leave out repeated columns")
                others = [column.name for column in profile.columns if column.name not in recipe.targets]
                widgets.control(
                    settings,
                    "group",
                    st.selectbox,
                    "Rows that stay together in splits",
                    list(dict.fromkeys(("", settings["group"], *others))),
                    format_func=lambda name: f"rows of one {name}" if name else "none",
                    width=250,
                )
        encoded = draw_size(settings, first, recipe, profile) if settings["target"] else None
        draw_train(settings, recipe, encoded)
    strengths.draw(settings, recipe, encoded is not None, linked, top)


def _done(name: str, work: Callable[..., object], words: str, failed: Callable[[TaskView], None]) -> bool:
    """Return whether some work, which stores its result itself, is complete; else draw its progress."""

    def make(should_stop: Callable[[], bool]) -> Iterator[None]:
        work(should_stop=should_stop)
        yield None

    return results_of(f"data:{name}", make, words, "data_work", failed) is not None


def _unreadable(settings: Settings, view: TaskView) -> None:
    failure(view)
    st.caption("If the file is a table, set its format below; otherwise choose another file.")
    _reading(settings, None, expanded=True)


def _notes(notes: Iterable[str]) -> None:
    """Draw the inferred format, without hints at command-line options."""
    if lines := [re.split(r"[;.] `--", note)[0].rstrip(".") + "." for note in notes]:
        st.info("  \n".join(map(plain, lines)), icon=":material/info:")


def _first_rows(source: Source) -> None:
    if source.table is None:
        assert source.X is not None
        st.caption(f"{len(source):,} rows, {source.X.shape[1]:,} features.")
        return
    head = source.table.head(_ROWS)
    st.caption(f"First of {len(source):,} rows; {source.table.shape[1]:,} columns.")
    st.dataframe(
        head.astype("str").where(head.notna(), "").map(lambda cell: cell[:200]),
        hide_index=True,
        key="data_head",
        alt="First rows of the file as parsed.",
    )


def _reading(settings: Settings, reading: Reading | None, *, expanded: bool) -> None:
    """Draw the format settings; "auto" shows the detected value."""
    words = "" if reading is None else f": {_WORDS[reading.kind]}"
    if reading is not None and reading.kind == "table":
        words += f", {_WORDS[reading.encoding]}, {plain(reading.delimiter)}, decimal {plain(reading.decimal)}"
    kind = settings["kind"] if reading is None else reading.kind
    names = ["kind", "encoding", "delimiter", "header", "decimal", "dates", "lines", "skip", "missing"]
    names = {"libsvm": ["kind", "encoding", "base"], "parquet": ["kind", "dates", "missing"]}.get(kind, names)
    with st.expander(f"File format{words}", icon=":material/tune:", expanded=expanded, key="data_reading"):
        shown = [name for name in names if settings.shows(name, _LABELS.get(name) or widgets.title_of(name))]
        for place, name in enumerate(shown):
            if place % 4 == 0:
                row = st.columns(4)
            labels = {value: _WORDS.get(value, value) for value in CHOICES.get(name, ())}
            detected = "auto" if reading is None else getattr(reading, name)
            if settings[name] == "auto" and detected != "auto":
                labels["auto"] = f"auto: {_WORDS.get(detected, detected)}"
            with row[place % 4]:
                style: Any = "number" if name == "skip" else "select"
                widgets.param(settings, name, _LABELS.get(name), labels=labels, style=style)


_LABELS = {
    "lines": "Lines that are too long",
    "skip": "Lines to skip",
    "dates": "Day or month first",
    "missing": "Codes of missing values",
    "base": "First index",
}


# More values are unlikely to be levels.
_FEW = 12


def draw_target(settings: Settings, profile: Profile) -> None:
    """Draw the question of the column to predict."""
    known = [column.name for column in profile.columns]
    widgets.control(
        settings,
        "target",
        st.selectbox,
        "Predict",
        known if settings["target"] in known else ["", *known],
        format_func=lambda name: name or "choose a column",
        disabled=len(known) < 2,
        then=lambda: settings.set(positive="", task="auto", order="", logarithm="auto"),
    )


def draw_aim(settings: Settings, profile: Profile) -> None:
    """Draw the task and the positive class."""
    known = {column.name: column for column in profile.columns}
    target = known.get(settings["target"])
    if target is None:
        return
    with st.container(border=True, key="data_aim"):
        left, right = st.columns(2)
        with left:
            labels = {
                "auto": "Auto",
                "regression": "A number",
                "binary": "One class against the rest",
                "class": "Classes",
                "ordinal": "Ordered classes",
            }
            widgets.param(settings, "task", "Task", labels=labels, style="select")
        with right:
            if settings["task"] == "ordinal" or not settings["also"]:
                _classes(settings, target)
        number = settings["task"] in ("auto", "regression") and not settings["positive"]
        if settings["logarithm"] != "auto" or (number and target.positive):
            widgets.param(
                settings,
                "logarithm",
                "Logarithm",
                labels={"auto": "If it predicts better", "1": "Yes", "0": "No"},
            )
        if len(known) > 2 and not settings["positive"]:
            _also(settings, [name for name in known if name != target.name])


def _classes(settings: Settings, target: Column) -> None:
    """Draw the order of classes, or the positive class."""
    levels, task = target.levels, settings["task"]
    if task == "ordinal" and len(levels) > 2:
        widgets.control(
            settings, "order", st.text_input, "In ascending order", placeholder=", ".join(levels[:_FEW])
        )
    elif levels and (task == "binary" or len(levels) == 2 or (target.kind == "word" and task == "auto")):
        usual = "all classes" if task == "auto" else "choose a class"
        if len(levels) == 2:
            usual = "the later of two"
        widgets.control(
            settings,
            "positive",
            st.selectbox,
            "The class to predict",
            list(dict.fromkeys(("", settings["positive"], *levels))),
            format_func=lambda level: level or usual,
        )


def _also(settings: Settings, names: list[str]) -> None:
    """Draw the menu of further targets."""
    if not settings.shows("also", "Further targets"):
        return
    key = f"data_also_{settings['file'][:8]}_{settings['target']}"
    st.multiselect(
        "Predict other columns with it",
        names,
        default=[name for name in settings["also"].split("\t") if name in names],
        key=key,
        placeholder="none",
        disabled=settings.locks("also"),
        on_change=lambda: settings.set(also="\t".join(st.session_state[key])),
        help="All numbers, or all yes/no. They are excluded from the features.",
    )


_MESSAGE = "fmviz:data:told"


def draw_shelf(settings: Settings) -> None:
    """Draw the data sets of this session."""
    if (message := st.session_state.pop(_MESSAGE, None)) is not None:
        st.success(plain(message), icon=":material/check:")
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
                help="Open its columns and change the encoding.",
            )
            if upload.owner in ("", session_uploads.owner()):
                widgets.confirm_delete(
                    f"data_delete_{upload.name}",
                    f"Deletes **{plain(upload.title)}** and its file; links and runs can no longer load "
                    "these data.",
                    partial(_delete, settings, upload),
                )
    st.caption(
        "Only this session lists these data sets. Anyone with a link to one can open it; only the browser "
        "that uploaded it can delete it from this computer."
    )


def _delete(settings: Settings, upload: Upload) -> None:
    library.delete(upload.name)
    session_uploads.forget(upload.name)
    if settings["dataset"] == upload.name:
        settings.set(dataset=next(iter(DATASETS)))
    st.session_state[_MESSAGE] = f"{upload.title} was deleted."


_MANY = {
    "class": ("classes", "one machine each"),
    "ordinal": ("ordered classes", "one machine per step between them"),
    "several": ("labels", "one machine each"),
    "regression": ("numbers, standardised", "one machine each"),
}
_SHARED = "all on one shared basis"


def draw_size(settings: Settings, first: Recipe, recipe: Recipe, profile: Profile) -> Size | None:
    """Draw the encoded size; return it, or None if it is unknown."""
    st.subheader("Encoded data")
    file = settings["file"]
    work = partial(library.sized, file, recipe)
    if not _done(f"size:{library.name_of(file, recipe)}", work, "Counting features.", _cannot):
        return None
    size = library.sized(file, recipe)
    shared = size.outputs > 1 and settings["outputs"] == "shared"
    rank = SharedBasis.suited["rank"] if shared else settings["rank"]
    needed = 3 * size.bytes_of_x + 32 * size.features * rank
    pairs = size.features * (size.features - 1) // 2
    with st.container(horizontal=True, gap="medium", key="data_figures"):
        st.metric("Rows", f"{size.rows:,}", width="content")
        st.metric("Features", f"{size.features:,}", width="content")
        st.metric("Pairs of features", f"{pairs:,}", width="content")
    lost = f" {size.dropped:,} rows with missing values are left out." if size.dropped else ""
    st.markdown(f"{_goal(settings, size)}{lost}")
    if needed > available_bytes():
        st.warning(
            f"Training needs about {in_words(needed)}, and {in_words(available_bytes())} are free. Take a "
            "sample of the rows, or leave columns out.",
            icon=":material/memory:",
        )
    if size.features < 2:
        st.warning("Interactions need at least two features. Use more columns.", icon=":material/lightbulb:")
    # Column notes and questions are above.
    said = [column.note for column in profile.columns if column.note]
    leaks = {TELLS.format(choice.name): choice for choice in recipe.columns}
    leaks = {note: leaks[note] for note in size.notes if note in leaks}
    said += leaks
    notes = [note for note in size.notes if "`--" not in note and not any(words in note for words in said)]
    _notes(notes)
    for place, (note, leak) in enumerate(leaks.items()):
        without = columns.corrections_of(first, recipe.corrected([replace(leak, kind="ignored")]))
        columns.question(settings, f"leak_{place}", plain(note), {"Leave it out": {"columns": without}})
    with st.expander("Features by column", icon=":material/view_column:"):
        st.dataframe(
            size.columns,
            hide_index=True,
            key="data_parts",
            height=35 * (min(len(size.columns), 10) + 1) + 3,
            alt="Number of features and non-zeros per column of the file.",
        )
    return size


def _goal(settings: Settings, size: Size) -> str:
    """Return the prediction target as a sentence."""
    labels = [f"**{plain(label)}**" for label in size.labels]
    if size.task == "binary":
        n = size.counts[1]
        return f"Binary target: {labels[1]} in {n:,} rows ({n / size.rows:.0%}), otherwise {labels[0]}."
    if not labels:
        return "Standardised number: an error of 1 is one standard deviation."
    if size.counts:
        labels = [f"{words} ({n:,})" for words, n in zip(labels, size.counts, strict=True)]
    many, how = _MANY[size.task]
    how = _SHARED if settings["outputs"] == "shared" else how
    more = f" and {len(labels) - _FEW:,} more" if len(labels) > _FEW else ""
    return f"{len(labels):,} {many}, {how}: {', '.join(labels[:_FEW])}{more}."


def _cannot(view: TaskView) -> None:
    failure(view)
    st.caption("Change the target, the columns or the rule for missing values above; or upload another file.")


def draw_train(settings: Settings, recipe: Recipe, size: Size | None) -> None:
    """Draw the settings of a first fit and the button that adds the data to the menu of data sets."""
    if settings.shows_any("rank", "validation", "outputs", "strengths", "keep"):
        st.subheader("Train")
    several = size is not None and size.outputs > 1
    shared = several and settings["outputs"] == "shared"
    with st.container(horizontal=True, vertical_alignment="bottom", key="data_first"):
        # λ determines the number of shared bases.
        if not shared:
            with st.container(width=220):
                widgets.param(settings, "rank", "Rank $k$", style="number")
        with st.container(width=220):
            widgets.param(settings, "validation", "Validation share", style="number")
        if several:
            widgets.param(
                settings,
                "outputs",
                "Several outputs",
                labels={"each": "Separate machines", "shared": "One shared basis"},
            )
        if not shared:
            labels = {"sparsest": "Sparsest within one standard error", "best": "Best prediction"}
            widgets.param(settings, "strengths", "Strengths", labels=labels)
    widgets.action(
        settings,
        "keep",
        "Keep as a data set",
        icon=":material/bookmark_add:",
        disabled=size is None,
        on_click=_keep,
        args=(settings, recipe),
        help="Adds the data to the data set menu of this session, for all pages.",
    )
    st.caption(
        "Means, deviations, levels and curves are computed on all rows, which gives runs with other splits "
        "and seeds the same features."
    )


def _keep(settings: Settings, recipe: Recipe) -> None:
    upload = import_upload(settings["file"], recipe, settings["title"], owner=session_uploads.owner())
    session_uploads.remember(upload.name)
    st.session_state[_MESSAGE] = f"{upload.title} was added to the data set menu."
    settings.set(dataset=upload.name)
