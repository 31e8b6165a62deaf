"""Tables that are larger than memory: batches of rows of a file, and a random sample of all rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fmviz.tables.cells import quoted
from fmviz.tables.files import GZIP, detect, read_unfolded
from fmviz.tables.kinds import Column, described
from fmviz.tables.limits import LOCAL
from fmviz.tables.source import DELIMITERS, Reading, frame_of, named

# The maximum numbers of rows and cells of a sample, and of different cells that are counted.
_SAMPLE_ROWS, _SAMPLE_CELLS = 200_000, 5_000_000
_BATCH_CELLS = 1_500_000
_FORMATS = {GZIP: "gzip", b"ARROW1": "feather"}
# The beginning of a text, from which its format is detected.
_HEAD = 1_000_000
_ADVICE = "Save it as Parquet, which is read by batches, or take a sample of its rows."


class TableSample:
    """A fixed random sample of the rows of a table that comes in batches, with counts of all words.

    The sample does not depend on the sizes of the batches: every row has a random number, drawn in the order
    of the rows, and those with the smallest ones are kept.

    Attributes
    ----------
    n_rows : int
        The number of rows of all batches.
    table : DataFrame
        The rows of the sample, in order.
    rows : (n,) int ndarray
        Their indices in the table.
    y : (n,) ndarray or None
        Their target, if it was given.
    """

    def __init__(self) -> None:
        self.n_rows, self.table, self.y = 0, pd.DataFrame(), None
        self.rows, self._numbers = np.empty(0, dtype=np.int64), np.empty(0)
        self._rng = np.random.default_rng(0)
        self._counts: dict[str, Counter[Any] | None] = {}

    def add(self, table: pd.DataFrame, y: np.ndarray | None = None) -> None:
        """Add a batch of rows; raises ValueError if its columns are not those of the first."""
        if self.n_rows and [*table] != [*self.table]:
            raise ValueError(
                f"The columns are {quoted([*table], 20)}, but those of the first batch are "
                f"{quoted([*self.table], 20)}. Give all batches the same columns."
            )
        joined = pd.concat([self.table, table], ignore_index=True) if self.n_rows else table
        numbers = np.r_[self._numbers, self._rng.random(len(table))]
        rows = np.r_[self.rows, self.n_rows + np.arange(len(table))]
        kept = np.sort(np.argsort(numbers)[: min(_SAMPLE_ROWS, _SAMPLE_CELLS // table.shape[1])])
        self._numbers, self.rows = numbers[kept], rows[kept]
        self.table = joined.iloc[kept].reset_index(drop=True)
        self.y = None if y is None else np.r_[y[:0] if self.y is None else self.y, y][kept]
        self.n_rows += len(table)
        for name, values in table.items():
            if (counter := self._counts.setdefault(str(name), Counter())) is not None:
                counts = values.value_counts(sort=False)
                counter.update(dict(zip(counts.index.astype(object), counts.tolist(), strict=True)))
                if len(counter) > _SAMPLE_CELLS // table.shape[1] or (
                    values.dtype.kind == "f" and (values % 1 > 0).any()
                ):
                    self._counts[str(name)] = None

    @property
    def words(self) -> Mapping[str, Counter[Any]]:
        """The number of rows of every word, by column; empty if all rows are in the sample.

        Columns with fractions or more than 5,000,000 different values in all columns are left out.
        """
        counts = {} if len(self.table) == self.n_rows else self._counts
        return {name: counter for name, counter in counts.items() if counter is not None}

    def columns(self, decimal: str = "point", dates: str = "auto", missing: str = "") -> tuple[Column, ...]:
        """Describe the columns like `described`, from the sample."""
        words = self.words
        return tuple(
            # Its values may repeat outside of the sample only.
            replace(column, kind="word", note="")
            if column.kind == "ignored"
            and column.different > 1
            and 2 * len(words.get(column.name, range(self.n_rows))) <= self.n_rows
            else column
            for column in described(self.table, decimal, dates, missing)
        )


class TableFile:
    """A Parquet, Feather or CSV file, read by batches of rows with the same cells as by `files.read`.

    Parameters
    ----------
    path : Path
        The file.
    asked : Reading, optional
        The options; "auto" means detected, from the beginning of a text.

    Attributes
    ----------
    reading : Reading
        The options used.
    names : dict of str to str
        The names of the columns, with those in the file.
    n_rows : int
        The number of rows, estimated for a text.

    Raises
    ------
    ValueError
        If the file is of another format, broken, or a text that is not a plain table.
    """

    def __init__(self, path: Path, asked: Reading | None = None) -> None:
        from pyarrow import dataset

        asked, self.path = asked or Reading(), path
        with open(path, "rb") as stream:
            head = stream.read(_HEAD)
        begins = [form for start, form in _FORMATS.items() if head.startswith(start)]
        form: Any = begins[0] if begins else detect(head, path.name) if asked.kind == "auto" else asked.kind
        if form in ("gzip", "libsvm"):
            raise ValueError(f"{path.name} is {form}, which cannot be read by batches. {_ADVICE}")
        self.reading, text = Reading("parquet", "utf-8", "comma", "yes", "point"), None
        if form == "table":
            head = head[: head.rfind(b"\n") + 1] or head
            text = read_unfolded(head, replace(asked, kind=form), path.name, LOCAL)
            self.reading, form = text.reading, _csv([*text.columns], text.reading)
        with _readable(path.name):
            self._data = dataset.dataset(path, format=form)
            columns = [*frame_of(self._data.schema.empty_table())]
            self.n_rows = (
                round(path.stat().st_size / len(head) * len(text)) if text else self._data.count_rows()
            )
        self.names = dict(zip(named(columns, []), columns, strict=True))
        first = next(self.batches()).head(len(text)) if text else pd.DataFrame()
        if text and not first.equals(text.columns.head(len(first))):
            raise ValueError(
                f"{path.name} has comments, titles, units or blanks around its cells, and is too large to be "
                f"read at once. {_ADVICE}"
            )

    def batches(self, columns: Iterable[str] | None = None, begin: int = 0) -> Iterator[pd.DataFrame]:
        """Yield the rows from an index on in batches, with all or some columns."""
        names = list(self.names if columns is None else columns)
        size = max(1, _BATCH_CELLS // len(self.names))
        with _readable(self.path.name):
            for batch in self._record_batches([self.names[name] for name in names], size):
                if len(batch) > begin:
                    yield frame_of(batch.slice(begin)).set_axis(names, axis=1)
                begin -= min(begin, len(batch))

    def _record_batches(self, columns: list[str], size: int) -> Iterator[Any]:
        """Yield record batches of some columns; scanners of `pyarrow.dataset` read ahead without a limit."""
        import pyarrow as pa
        from pyarrow import csv, parquet

        form = self._data.format
        if form.default_extname == "parquet":
            # A buffer would grow to the size of the file.
            file = parquet.ParquetFile(self.path, pre_buffer=False)
            yield from file.iter_batches(size, columns=columns, use_threads=False)
        elif form.default_extname == "csv":
            options = form.default_fragment_scan_options
            reader = csv.open_csv(
                self.path, options.read_options, form.parse_options, options.convert_options
            )
            yield from (batch.select(columns) for batch in reader)
        else:
            with pa.OSFile(str(self.path)) as stream:
                file = pa.ipc.open_file(stream)
                for number in range(file.num_record_batches):
                    yield from (
                        pa.Table.from_batches([file.get_batch(number)]).select(columns).to_batches(size)
                    )


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Turn errors of pyarrow into sentences."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        message = " ".join(str(error).split())[:200].rstrip(".")
        raise ValueError(f"{name} cannot be read by batches ({message}). Save it again.") from None


def _csv(names: list[str], reading: Reading) -> Any:
    """Return the format of a text whose cells are words, for `pyarrow.dataset`."""
    import pyarrow as pa
    from pyarrow import csv, dataset

    return dataset.CsvFileFormat(
        csv.ParseOptions(delimiter=DELIMITERS[reading.delimiter], newlines_in_values=True),
        read_options=csv.ReadOptions(
            column_names=names,
            skip_rows=reading.skip + (reading.header == "yes"),
            encoding=reading.encoding,
            # 32 blocks are read ahead.
            block_size=1 << 22,
            use_threads=False,
        ),
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), null_values=["", "?"], strings_can_be_null=True
        ),
    )
