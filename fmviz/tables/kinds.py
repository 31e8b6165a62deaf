"""Infer the kind of every column of a table, such as number, word or date, from its cells and its name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from fmviz.checked import all_different
from fmviz.tables.cells import (
    NOTHING,
    PERHAPS,
    UNIX,
    DateFormat,
    Notation,
    answers_in,
    are_ranges,
    cleaned,
    date_format,
    dates_of,
    in_one_case,
    is_error,
    is_long,
    is_number,
    notation_of,
    numbers_of,
    parts_of,
    quoted,
    shortened,
    sign_of_pairs,
    some,
    without,
    words_of,
)
from fmviz.tables.columns import FeatureColumn, NumberColumn, TextColumn, WordColumn
from fmviz.tables.limits import MOST_LEVELS

KINDS = ("number", "word", "yes_no", "date", "pair", "answers", "text", "ignored")
"""The ways to use a column."""

_CLASSES = 50
_FEW = 12
_TEXT_WORDS = 3
# A number with a unit, and the maximum number of units of a column of measurements.
_MEASURED, _MOST_UNITS = re.compile(r"[-+]?\d[\d.,]* *((?:°|[^\W\d_])[^\d]{0,8})"), 6
_STAND_IN = re.compile(r"-9{2,}|9{3,}")
_IDENTIFIER = re.compile(
    r"(^|[\W_])(id|uid|uuid|guid|key|index|nr|no|row|rownum|serial)$|(?-i:[a-z]I[dD]$)", re.I
)
_CODE = re.compile(r"(^|[\W_])(id|code|zip|zip_?code|post_?code|postal_?code|plz)$|[a-z]I[dD]$")
_TIME = re.compile(r"year|month|week|day|date|time|hour|age", re.I)
_TARGET = re.compile(
    r"^(target|label|class|y|outcome|response|survived|churn|default|late|price|rating)$", re.I
)
# Unix times are recognized by name: their numbers may be anything.
_MOMENT = re.compile(
    r"time|date|stamp|epoch|unix|zeit|datum|fecha|hora|heure|horodat|tiempo|tempo|temps|tijd|czas|when|since"
    r"|created|modified|joined|seen|(^|_)(data|ts|at|on)$|(?-i:[a-z]At$)",
    re.I,
)
_NUMBERED = re.compile(r"[A-Za-z]+[-_ ]?\d+")
_FEWEST_GROUPS = 20
_SAME = "It has the same value in all rows{}."
_OWN = "It looks like an identifier: {} row has a {} of its own."


# Ascending rating scales, one per line, with synonyms separated by slashes.
_SCALES = tuple(
    {word: at for at, place in enumerate(line.split()) for word in place.split("/")}
    for line in """
    awful/terrible/dreadful poor/bad fair/okay/ok/average/medium good great/very_good excellent/perfect
    never rarely/seldom sometimes often/frequently/usually always
    none/no minimal/very_low low/slight/mild medium/moderate/mid/middle high/severe very_high/extreme/critical
    tiny/xs small/s medium/m large/l huge/xl xxl
    strongly_disagree disagree neutral/undecided agree strongly_agree
    very_dissatisfied dissatisfied neutral satisfied very_satisfied
    beginner/novice intermediate advanced expert
    cold cool warm hot
    """.strip().splitlines()
)


@dataclass(frozen=True)
class Column:
    """The kind of a column, with a summary.

    Attributes
    ----------
    name : str
        Unique in the table.
    kind : str
        The recommended use, one of `KINDS`.
    missing : int
        The number of missing values, including infinite numbers and, among numbers, stray words.
    different : int
        The number of unique values.
    examples : str
        The first few values.
    note : str
        How it was read, or why it is ignored; may be empty.
    question : str
        An ambiguity in its reading; may be empty.
    option : str
        The option for the other reading, such as "dates=day" or "words".
    levels : tuple of str
        The most frequent values, candidates for the positive class; a rating scale in its order.
    positive : bool
        Whether it has more than two distinct numbers, all positive.
    notation : Notation
        Its number format.
    dates : DateFormat or None
        Its date format.
    merged : mapping of str to str
        Spellings of words that differ only in case.
    absent : tuple of str
        Words that stand for missing values.
    order : tuple of str
        The words of an ordered categorical, in its order.
    blank : str
        The level of blank cells, if a column has only one word.
    hint : str
        A sentence on groups of rows, if identifiers repeat.
    """

    name: str
    kind: str = "ignored"
    missing: int = 0
    different: int = 0
    examples: str = ""
    note: str = ""
    question: str = ""
    option: str = ""
    levels: tuple[str, ...] = ()
    positive: bool = False
    notation: Notation = field(default_factory=Notation)
    dates: DateFormat | None = None
    merged: Mapping[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = NOTHING
    order: tuple[str, ...] = ()
    blank: str = ""
    hint: str = ""

    @property
    def numbers(self) -> NumberColumn:
        """The reader of the column as numbers."""
        return NumberColumn(name=self.name, notation=self.notation, absent=self.absent[len(NOTHING) :])

    @property
    def words(self) -> WordColumn:
        """The reader of the column as words."""
        return WordColumn(
            name=self.name, merged=self.merged, absent=self.absent, blank=self.blank, levels=self.order
        )

    def reader(self, kind: str) -> FeatureColumn | None:
        """Return the reader of the column as a kind; None for parts, and for none."""
        yes_no, text = replace(self.words, single=True), TextColumn(name=self.name)
        return {"number": self.numbers, "text": text, "word": self.words, "yes_no": yes_no}.get(kind)

    @property
    def sentences(self) -> tuple[str, str]:
        """Sentences on how it was read or why it is dropped, and its question; may be empty."""
        if self.kind == "ignored":
            return f"Column {self.name!r} is left out. {self.note}", ""
        return f"Column {self.name!r}: {self.note}" if self.note else "", self.asked

    @property
    def asked(self) -> str:
        """The question, with the command-line option for the other reading."""
        if not self.question:
            return ""
        option = f"--words {shlex.quote(self.name)}" if self.option == "words" else f"--read {self.option}"
        return f"{self.question} `{option}` reads {_OTHERWISE[self.option.partition('=')[0]]}."


_OTHERWISE = {
    "words": "each as a word",
    "missing": "this as missing",
    "dates": "it in the other way",
    "decimal": "it in the other way",
}


def described(
    table: pd.DataFrame, decimal: str = "point", dates: str = "auto", missing: str = ""
) -> tuple[Column, ...]:
    """Infer the kinds of the columns of a table.

    Parameters
    ----------
    table : DataFrame
        A table with typed values or text from a file.
    decimal : {"point", "comma"}
        The decimal sign of columns whose cells prove none.
    dates : {"auto", "day", "month"}
        The first of day and month in dates with two-digit days and months.
    missing : str
        Words that stand for missing values, separated by commas.
    """
    first = Column("", notation=Notation(decimal), absent=(*NOTHING, *listed(missing)))
    return tuple(_described(table[name], replace(first, name=str(name)), dates) for name in table)


def listed(words: str) -> tuple[str, ...]:
    """Split a comma-separated list of words."""
    return tuple(word.strip() for word in words.split(",") if word.strip())


def _described(values: pd.Series, column: Column, dates: str) -> Column:
    if isinstance(values.dtype, pd.CategoricalDtype):
        order = words_of(values.cat.remove_unused_categories().cat.categories.to_series())
        column = replace(column, order=tuple(order) if values.cat.ordered else ())
        values = values.astype(values.cat.categories.dtype)
    if pd.api.types.is_timedelta64_dtype(values):
        values = pd.Series(words_of(values), values.index, name=values.name)
    values = cleaned(values)
    errors = values[values.isin(list(filter(is_error, values.unique())))]
    known = without(values, [*column.absent, *errors.unique()]).dropna()
    counts = known.value_counts()
    column = _with_kind(replace(column, different=len(counts)), known, dates, len(values))
    cells = f"{quoted([repr(word) for word in errors.unique()])} ({len(errors):,} cells)"
    shown = bool(len(errors)) and column.kind != "ignored"
    note = f"{column.note} {f'Errors of a spreadsheet count as missing: {cells}.' * shown}"
    numbered = all(map(_NUMBERED.fullmatch, map(str, counts.index))) or _IDENTIFIER.search(column.name)
    groups = column.kind == "word" and numbered and len(known) >= 2 * len(counts) >= _FEWEST_GROUPS
    hint = (
        f"Column {column.name!r} has {len(counts):,} values in {len(known):,} rows. If they are persons or "
        f"things, {_option(column, '--group')} keeps the rows of each on one side of every split."
    )
    words = words_of(counts.index[:_CLASSES].to_series()) if len(counts) <= 4 * _CLASSES else ()
    levels = tuple(dict.fromkeys(column.merged.get(word, word) for word in words))
    filled = bool(column.blank) or column.kind == "answers"
    return replace(
        column,
        missing=0 if filled else column.missing + len(values) - len(known),
        different=len(counts) - len(column.merged) + bool(column.blank),
        examples=" · ".join(shortened(word, 30) for word in words_of(known.drop_duplicates().head(4))),
        levels=column.order or ascending(levels) or (*levels, *filter(None, [column.blank])),
        note=note.strip(),
        hint=hint if groups else "",
    )


def _with_kind(column: Column, known: pd.Series, dates: str, n: int) -> Column:
    """Return a column with its kind and format, from its known values and the number of rows."""
    merged = in_one_case(words_of(known)) if column.different <= _FEW else {}
    if column.different - len(merged) < 2:
        return _of_ticks(replace(column, merged=merged), known, n)
    if column.order:
        return replace(_of_words(column, known), note=f"Categories in the order {quoted(column.order)}.")
    if pd.api.types.is_bool_dtype(known):
        return replace(column, kind="yes_no")
    read = _of_dates(column, known, dates) or _of_written_numbers(column, known)
    return read or _of_several(column, known) or _of_words(column, known)


def _of_ticks(column: Column, known: pd.Series, n: int) -> Column:
    """Return a column with a single word, which is filled or blank, or one without differing values."""
    words = [word for word in words_of(known.drop_duplicates()) if word not in column.merged]
    if not 1 < len(known) < n - 1:
        note = _SAME.format(" that have one" if len(known) < n else "")
        return replace(column, note=note if words else "It has no values.")
    note = f"Filled with {words[0]!r} or blank, which are yes and no; {_option(column, '--ignore')} "
    return replace(column, kind="yes_no", blank="(blank)", note=f"{note}leaves it out.")


def _option(column: Column, option: str, kind: str = "") -> str:
    """Return an option of the command line for a column."""
    return f"`{option} {shlex.quote(column.name + kind)}`"


def _of_dates(column: Column, known: pd.Series, dates: str) -> Column | None:
    """Return a column of dates or times, None if it is none."""
    form = date_format(known, dates)
    if form is None or (form.form == UNIX and not _MOMENT.search(column.name)):
        return None
    lost = int(dates_of(known, form.form).isna().sum())
    note = f"{lost:,} cells are not dates and count as missing." if lost else ""
    if form.form == UNIX:
        numbers = f"{_option(column, '--use', '=number')} reads numbers."
        note = f"Read as times since 1970, in UTC ({dates_of(known, UNIX).iloc[0]}); {numbers} {note}".strip()
    question, option = form.question(column.name)
    return replace(column, kind="date", note=note, missing=lost, dates=form, question=question, option=option)


def _of_written_numbers(column: Column, known: pd.Series) -> Column | None:
    """Return a column of numbers, typed or in a common notation; None if it has none, or long integers."""
    if is_number(known):
        long = known.dtype.kind in "iu" and any(map(is_long, map(str, known.unique())))
        return None if long else _of_numbers(column, known.to_numpy(dtype=np.float64), known)
    likely = known[~known.isin(PERHAPS)]
    read = notation_of(likely, column.notation.decimal) if len(likely) > 0.5 * len(known) else None
    if read is None or not (read.unit or column.different > 2 or set(known) <= {"0", "1"}):
        return None
    numbers = numbers_of(likely, read)
    kept = ~np.isnan(numbers)
    # A cell with its convention is the better example.
    odd = likely[kept & ~likely.astype(str).str.fullmatch(r"[-+.,\d]*").to_numpy(bool)]
    note = read.sentence(str((odd if len(odd) else likely[kept]).iloc[0]))
    if read.habits or read.unit in ("K", "M", "B"):
        note += f" {_option(column, '--words')} reads each as a word."
    stray = likely[~kept & (likely != read.missing)].map(str)
    if len(stray):
        cell = repr(shortened(stray.iloc[0], 30))
        many = f" {len(stray):,} cells such as {cell} are not numbers and count as missing."
        note += many if len(stray) > 1 else f" 1 cell, {cell}, is not a number and counts as missing."
    column = replace(column, note=note.strip(), missing=len(known) - int(kept.sum()), notation=read)
    return _of_numbers(column, numbers[kept], likely[kept])


def _of_several(column: Column, known: pd.Series) -> Column | None:
    """Return a column with two numbers or several answers a cell, None if it has neither."""
    words, as_words = list(map(str, known.unique())), f"{_option(column, '--words')} reads each as a word."
    if (sign := sign_of_pairs(words)) and not (_IDENTIFIER.search(column.name) or _CODE.search(column.name)):
        ranges, unread = are_ranges(words), known[parts_of(known, "pair").popitem()[1].isna()]
        example = repr(known.drop(unread.index).iloc[0])
        if ranges and len(words) <= min(_CLASSES, len(known) / 5):
            note = f"Ranges such as {example} are categories; {_option(column, '--use', '=pair')} "
            return replace(column, kind="word", note=f"{note}reads their ends as two numbers.")
        what = "ranges, as their two ends" if ranges else f"two numbers around {sign!r}"
        note = f"Read as {what} ({example}); {as_words}"
        note += f" Other cells, such as {unread.iloc[0]!r}, count as missing." if len(unread) else ""
        return replace(column, kind="pair", note=note, missing=len(unread))
    separator, answers = answers_in(known)
    note = f"Several answers, between {separator!r}: {quoted(answers)}, each a yes or no; {as_words}"
    return replace(column, kind="answers", note=note) if answers else None


def _of_numbers(column: Column, numbers: np.ndarray, cells: pd.Series) -> Column:
    """Return a column of numbers, codes or row numbers, from its values and their text."""
    name, notation, asked = column.name, column.notation, ("", "")
    finite = np.isfinite(numbers)
    numbers, cells, infinite = numbers[finite], cells[finite], int((~finite).sum())
    if infinite:
        note = f"{infinite:,} infinite values count as missing. {column.note}".strip()
        column = replace(column, note=note, missing=column.missing + infinite)
    n, different = numbers.size, np.unique(numbers)
    if different.size < 2:
        return replace(column, note=_SAME.format(" that have one"))
    if set(different.tolist()) == {0.0, 1.0}:
        return replace(column, kind="yes_no")
    integral = bool((numbers == np.round(numbers)).all())
    own = n >= 20 and different.size == n and integral
    # A subset of a numbered table still has most of the row numbers.
    counting = own and np.ptp(numbers) < 2 * n and not _TIME.search(name)
    if own and (counting or _IDENTIFIER.search(name) or _CODE.search(name)):
        return replace(column, note=_OWN.format("every", "number"))
    if integral and not notation.unit:
        if _CODE.search(name) and different.size <= n / 2:
            note = f"Its integers look like codes; each is treated as a category. {column.note}"
            return replace(column, kind="word", note=note.strip())
        if 2 < different.size <= _FEW and different.size <= n / 5:
            asked = f"Column {name!r} has only {different.size} distinct integers.", "words"
    for end, inner in ((different[0], different[1:]), (different[-1], different[:-1])):
        # Far from all others and frequent.
        far = min(abs(end - inner[0]), abs(end - inner[-1])) > np.ptp(inner)
        again = np.flatnonzero(numbers == end)
        if far and _STAND_IN.fullmatch(f"{end:g}") and 1 < again.size <= n / 2:
            word = str(cells.iloc[again[0]])
            asked = (
                f"Column {name!r} contains {word}, which may stand for a missing value.",
                f"missing={word}",
            )
    asked = notation.question(name) if notation.ambiguous else asked
    return replace(
        column,
        kind="number",
        question=asked[0],
        option=asked[1],
        positive=different.size > 2 and bool(different[0] > 0.0),
    )


def _of_words(column: Column, known: pd.Series) -> Column:
    """Return a column of words, yes/no, texts or identifiers."""
    n, m = len(known), column.different
    words = list(map(str, known))
    if (m > n / 2 or m > MOST_LEVELS) and n >= 20:
        if np.mean([len(word.split()) for word in some(words)]) >= _TEXT_WORDS:
            note = f"Texts: each of their most frequent words, at most {MOST_LEVELS:,}, is a feature."
            return replace(column, kind="text", note=note)
        if m == n or (n >= 50 and m > 0.9 * n):
            return replace(column, note=_OWN.format("every" if m == n else "nearly every", "word"))
    merged = in_one_case(words)
    column = replace(column, kind="yes_no" if m - len(merged) == 2 else "word", merged=merged)
    if merged:
        pairs = [f"{word!r} as {level!r}" for word, level in merged.items()]
        column = replace(column, note=f"Words that differ only in case are merged: {quoted(pairs)}.")
    measured = {match[1]: word for word in some(words) if (match := _MEASURED.fullmatch(word))}
    if m > _FEW and 1 < len(measured) <= _MOST_UNITS and all(map(_MEASURED.fullmatch, some(words))):
        examples = " and ".join(map(repr, [*measured.values()][:2]))
        note = f"Cells such as {examples} are categories: numbers need one unit."
        column = replace(column, note=f"{column.note} {note}".strip())
    if perhaps := [word for word in PERHAPS if word in set(words)]:
        are = "is a word" if len(perhaps) == 1 else "are words"
        question = f"{quoted([repr(word) for word in perhaps])} {are} in column {column.name!r}."
        column = replace(column, question=question, option=f"missing={','.join(perhaps)}")
    return column


def ascending(levels: Sequence[str]) -> tuple[str, ...]:
    """Return levels in the order of a rating scale that contains all of them, else ()."""
    words = {level: level.strip().lower().replace(" ", "_").replace("-", "_") for level in levels}
    able = (places for places in _SCALES if {*words.values()} <= places.keys())
    # Synonyms have the same place.
    scale = next((own for own in able if all_different([own[word] for word in words.values()])), {})
    return tuple(sorted(words, key=lambda level: scale[words[level]])) if scale else ()


def likely_target(columns: Iterable[Column]) -> str:
    """Return the only column with a typical name of a target; empty if there is none."""
    able = ("number", "yes_no", "word")
    named = [column.name for column in columns if column.kind in able and _TARGET.match(column.name)]
    return named[0] if len(named) == 1 else ""
