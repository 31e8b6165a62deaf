"""Detect the format and the text encoding of a file, and read it as a table, as libsvm or as Parquet."""

from __future__ import annotations

import gzip
import io
import math
import re
import zlib
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from fmviz.engine.errors import LARGEST
from fmviz.tables.cells import quoted, shortened
from fmviz.tables.limits import UPLOADS, Limits
from fmviz.tables.source import ENCODINGS, Reading, Source, frame_of, named
from fmviz.tables.text import read_text

_SAMPLE = 65_536
_LINES = 50
GZIP = b"\x1f\x8b"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_NUMBER = re.compile(r"[-+]?((\d+\.?\d*|\.\d+)(e[-+]?\d+)?|nan|inf|infinity)", re.I)
_LIBSVM_PAIR = re.compile(r"[-+.,\w]+(\s+qid:\d+)?\s+\d+:[-+.\w]+(\s.*)?")
_UNLABELLED = re.compile(r"\d+:[-+.\w]+(\s+\d+:[-+.\w]+)*(\s*#.*)?")
_OTHERS = (
    (
        re.compile(r"[-+.\w]+(\s+\d+:\d+:[-+.\w]+)+\s*"),
        "a libffm file (field:index:value). Write each entry as index:value, which makes it libsvm, or give "
        "the table that it was made of",
    ),
    (
        re.compile(r"[-+.\d]+( [-+.\d]+)?( '?\S+)?\s*\|\S*(\s+\S+)+.*"),
        "a Vowpal Wabbit file (label | features). Give the table that it was made of, or save it as libsvm",
    ),
)
_SHEET = "a spreadsheet; open it there and save it as CSV in UTF-8"
_CONTROLS = tuple(bytes([c]) for c in (*range(1, 9), *range(14, 27), *range(28, 32)))

# The first bytes of other formats, with a description and advice.
_BLANKS = rb"[\xef\xbb\xbf \t\r\n]*"
_BEGINNINGS = tuple(
    (re.compile(start, re.DOTALL), what)
    for start, what in (
        (rb"\xd0\xcf\x11\xe0", "an old Excel or Word file; open it there and save it as CSV in UTF-8"),
        (rb"PK\x03\x04.{0,4096}(xl/|\[Content_Types\].xml)", _SHEET),
        (rb"PK\x03\x04.{0,60}mimetype", _SHEET),
        (rb"PK\x03\x04", "a ZIP archive; unpack it and upload the table in it"),
        (
            rb"\x89PNG|\xff\xd8\xff|GIF8|BM6",
            "a picture (PNG, JPEG, GIF or BMP); upload the table that it shows",
        ),
        (rb"%PDF", "a PDF document; copy its table into a spreadsheet and save that as CSV"),
        (rb"SQLite format 3", "an SQLite database; export one of its tables as CSV"),
        (rb"\x89HDF", "an HDF5 file; save its table as Parquet or CSV"),
        (rb"ARROW1", "a Feather file; save it as Parquet"),
        (rb"\x93NUMPY", "a NumPy array; save it as CSV with the names of its columns"),
        (rb"BZh", "compressed with bzip2; unpack it, or compress it with gzip"),
        (rb"\xfd7zXZ", "compressed with xz; unpack it, or compress it with gzip"),
        (rb"\x28\xb5\x2f\xfd", "compressed with zstd; unpack it, or compress it with gzip"),
        (rb"7z\xbc\xaf", "a 7z archive; unpack it and upload the table in it"),
        (rb"Rar!", "a RAR archive; unpack it and upload the table in it"),
        (rb"\x7fELF|MZ\x90", "a program; upload a table"),
        (rb"{\\rtf", "a formatted text; save its table as CSV"),
        (rb"Obj\x01", "an Avro file; save it as Parquet or CSV"),
        (rb"ORC[^\x20-\x7e\s]", "an ORC file; save it as Parquet or CSV"),
        (
            rb"\x80[\x02-\x05]",
            "a Python pickle, which can run arbitrary code and is never opened. Save it as Parquet or CSV",
        ),
        (
            _BLANKS + rb"(?i:<!doctype html|<html|<head|<body)",
            "a web page, not a table: perhaps a login or an error page was saved in its place. Download the "
            "file again, and look at it in an editor",
        ),
        (_BLANKS + rb"(?i:<\?xml|<svg)", "an XML document. Export its table as CSV"),
        (_BLANKS + rb"(\{\s*[\"}]|\[\s*[\[{])", "JSON. Save it as CSV or Parquet, with one row per example"),
    )
)


def read(
    data: bytes, asked: Reading | None = None, name: str = "The file", within: Limits | None = None
) -> Source:
    """Read delimited text, libsvm or Parquet, compressed with gzip or not.

    Parameters
    ----------
    data : bytes
        The contents of the file.
    asked : Reading
        The options; "auto" means detected.
    name : str
        The name of the file in messages.
    within : Limits, optional
        The limits, by default those of uploads.

    Raises
    ------
    ValueError
        If the format is not supported, or the file is too large.
    """
    asked, within = asked or Reading(), within or UPLOADS
    within.check(name, file=len(data))
    return read_unfolded(unfolded(data, name, within), asked, name, within)


def read_unfolded(data: bytes, asked: Reading, name: str, within: Limits) -> Source:
    """Read a file like `read`, without decompression."""
    kind = detect(data, name) if asked.kind == "auto" else asked.kind
    if kind == "parquet":
        return _read_parquet(data, name, within)
    notes: list[str] = []
    text, encoding = _decoded(data, asked.encoding, name, notes)
    every_row = replace(within, rows=math.inf, cells=math.inf) if within.samples else within
    if kind == "libsvm":
        X, y, base = _libsvm(text, asked.base, name, every_row)
        reading = Reading(kind, encoding, "blanks", "no", "point", base=base)
        return _sampled(Source(reading, None, X, y, tuple(notes)), X.nnz, within)
    source = read_text(text, replace(asked, kind=kind, encoding=encoding), name, notes, every_row)
    return _sampled(source, source.columns.size, within)


def _sampled(source: Source, cells: int, within: Limits) -> Source:
    """Return the random sample of the rows of a file that fits, with a note; the file itself if all do."""
    if (rows := within.drawn(len(source), cells)) is None:
        return source
    notes = (*_sample_note(len(rows), len(source)), *source.notes)
    if source.X is None or source.y is None:
        return replace(source, table=source.columns.iloc[rows].reset_index(drop=True), notes=notes)
    return replace(source, X=source.X[rows], y=source.y[rows], notes=notes)


def _sample_note(n: int, total: int) -> list[str]:
    """Return a sentence on a random sample of n rows, unless they are all."""
    return [f"{n:,} of {total:,} rows, drawn at random."] * (n < total)


def detect(data: bytes, name: str = "The file") -> str:
    """Return "table", "libsvm" or "parquet"; raises ValueError with advice for other formats."""
    blanks = b"\x00 \t\r\n\xef\xbb\xbf"
    head = data[:_SAMPLE]
    if not head.strip(blanks) and not (head := data.lstrip(blanks)[:_SAMPLE]):
        raise ValueError(f"{name} is empty. Upload a table whose first line names its columns.")
    if head.startswith(b"PAR1"):
        return "parquet"
    for beginning, what in _BEGINNINGS:
        if beginning.match(head):
            raise ValueError(f"{name} is {what}.")
    if sum(map(head.count, _CONTROLS)) + (0 if _utf16(head) else 5 * head.count(0)) > 0.05 * len(head):
        raise ValueError(f"{name} is binary data, not text. Upload CSV, TSV, libsvm or Parquet.")
    lines = head.decode("utf-8", errors="replace").splitlines()
    lines = [line.strip() for line in lines[:_LINES] if line.strip() and line[0] != "#"]
    for pattern, what in _OTHERS:
        if sum(pattern.fullmatch(line) is not None for line in lines) > 0.8 * len(lines):
            raise ValueError(f"{name} is {what}.")
    # A row may have no features.
    labelled = sum(_LIBSVM_PAIR.fullmatch(line) is not None for line in lines) > 0.5 * len(lines)
    return "libsvm" if labelled or (lines and all(map(_is_unlabelled, lines))) else "table"


def _is_unlabelled(line: str) -> bool:
    """Return whether a libsvm line has no label."""
    indices = [int(index) for index in re.findall(r"(?:^|\s)(\d{1,18}):", line)]
    return bool(_UNLABELLED.fullmatch(line)) and indices == sorted(set(indices))


def unfolded(data: bytes, name: str, within: Limits) -> bytes:
    """Decompress a gzip file; return others unchanged."""
    if not data.startswith(GZIP):
        return data
    try:
        with gzip.open(io.BytesIO(data)) as stream:
            content = stream.read(within.unfolded + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{name} is a broken gzip file ({error}). Compress it again.") from None
    within.check(name, unfolded=len(content))
    return content


# -------------------------------------------------------------------------------------------------- text


def _utf16(data: bytes) -> str:
    """Return the UTF-16 variant of a text, with or without a byte order mark; "" if it is not UTF-16."""
    if data.startswith(_UTF16):
        return "utf-16"
    even, odd = data[0:4096:2].count(0), data[1:4096:2].count(0)
    least, most = 0.05 * len(data[:4096]) / 2, 0.4 * len(data[:4096]) / 2
    return "utf-16-le" if odd > most and even < least else "utf-16-be" if even > most and odd < least else ""


def _decoded(data: bytes, asked: str, name: str, notes: list[str]) -> tuple[str, str]:
    """Return the decoded text and its encoding."""
    encoding = _encoding(data) if asked == "auto" else asked
    codecs = {"utf-8": "utf-8-sig", "utf-16": _utf16(data) or "utf-16-le"}
    text = data.decode(codecs.get(encoding, encoding), errors="replace")
    lost, nul, guessed = text.count("\ufffd"), text.count("\x00"), asked == "auto" and encoding[:3] != "utf"
    sentences = {
        f"{lost:,} characters could not be read as {encoding}; choose another encoding.": lost,
        f"The text is not UTF-8 and was read as {encoding}. Check that its words are correct.": guessed,
        f"{nul:,} NUL characters were dropped.": nul,
    }
    notes += [sentence for sentence, applies in sentences.items() if applies]
    return text.replace("\x00", ""), encoding


def _encoding(data: bytes) -> str:
    if _utf16(data):
        return "utf-16"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        from charset_normalizer import from_bytes

        # Only lines that are not ASCII distinguish encodings.
        odd = [line for line in data[: error.start + 4 * _SAMPLE].split(b"\n") if not line.isascii()]
        signs = b"\n".join(odd).decode("utf-8", errors="replace")
        if sum(sign > "\x7f" and sign != "\ufffd" for sign in signs) >= signs.count("\ufffd"):
            return "utf-8"
        sample = b"\n".join(odd)[:8192]
        best = from_bytes(sample, cp_isolation=list(ENCODINGS[2:])).best()
        # The most common encoding if the choice makes no difference or no other encoding is likely.
        if best is None or best.encoding not in ENCODINGS or str(best) == sample.decode("cp1252", "replace"):
            return "cp1252"
        return best.encoding
    return "utf-8"


# ------------------------------------------------------------------------------------------------- libsvm


def _libsvm(text: str, base: str, name: str, within: Limits) -> tuple[sp.csr_array, np.ndarray, str]:
    """Return X, shape (N, d), the target, shape (N,), and the index of the first feature."""
    from sklearn.datasets import load_svmlight_file

    # scikit-learn rejects indices beyond 32 bits with a misleading message.
    far = max((int(index) for index in re.findall(r"\s(\d{7,60}):", text)), default=0)
    within.check(name, rows=text.count("\n"), values=text.count(":"), index=far)
    # Without labels, such as a file to predict.
    lines = [line for line in map(str.strip, text.splitlines()) if line and line[0] != "#"]
    if unlabelled := bool(lines) and all(map(_is_unlabelled, lines)):
        text = "\n".join(f"0 {line}" for line in lines)
    base = ("0" if re.search(r"\s0:", text) else "1") if base == "auto" else base
    try:
        X, y = load_svmlight_file(io.BytesIO(text.encode()), zero_based=base == "0")
    except (ValueError, OverflowError, MemoryError) as error:
        raise ValueError(f"{name} cannot be read as libsvm: {_bad_line(text, base) or error}.") from None
    if not X.shape[0] or not X.shape[1]:
        raise ValueError(f"{name} has no rows or no features.")
    within.check(name, index=X.shape[1])
    values = np.r_[X.data, y]
    if not (fits := np.abs(values) <= LARGEST).all():
        raise ValueError(f"{name} contains the value {values[~fits][0]:g}; remove it, or change its unit.")
    return sp.csr_array(X, dtype=np.float64), np.full(len(y), np.nan) if unlabelled else y, base


def _bad_line(text: str, base: str) -> str:
    """Describe the first invalid libsvm line of a text and its correction; or ""."""
    lines = ((number, line.partition("#")[0].strip()) for number, line in enumerate(text.splitlines(), 1))
    faults = ((number, _fault(line, base)) for number, line in lines if line)
    return next((f"line {number:,} {fault}" for number, fault in faults if fault), "")


def _fault(line: str, base: str) -> str:
    """Describe the error in a libsvm line and its correction; or ""."""
    (label, *pairs), shown = line.split(), shortened(line, 60)
    broken = next((pair for pair in pairs if not re.fullmatch(r"(qid|\d+):[-+.\w]+", pair)), "")
    indices = [int(index) for index in re.findall(r"\s(\d{1,18}):", line)]
    cells = (label, *re.findall(r"\s\d+:(\S+)", line))
    word = next((cell for cell in cells if not _NUMBER.fullmatch(cell)), "")
    faults = (
        (
            re.fullmatch(r"[^:,]+(,[^:,]+)+", label),
            f"has several labels ({label}), but only one is allowed. Use a table with a column of 0 and 1 "
            "for each label",
        ),
        (broken, f"has {broken!r} ({shown}) instead of index:value. Correct or remove it"),
        (
            base == "1" and 0 in indices,
            f"has the index 0 ({shown}), but indices start at 1. Use `--read base=0` if they start at 0",
        ),
        (
            any(a >= b for a, b in pairwise(indices)),
            f"has indices that do not ascend ({shown}). Sort its entries",
        ),
        (word, f"has {word!r} ({shown}), which is not a number. Correct or remove it"),
    )
    return next((sentence for is_wrong, sentence in faults if is_wrong), "")


# ------------------------------------------------------------------------------------------------ Parquet


def _read_parquet(data: bytes, name: str, within: Limits) -> Source:
    """Read a Parquet file; raises ValueError if it is broken, too large, or has too few columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    notes: list[str] = []
    try:
        file = pq.ParquetFile(io.BytesIO(data))
        schema = file.schema_arrow
        n, m = file.metadata.num_rows, len(schema)
        groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
        n_bytes = sum(group.total_byte_size for group in groups)
        rows = within.drawn(n, n * m, n_bytes)
        taken = n if rows is None else len(rows)
        within.check(name, columns=m, rows=taken, cells=taken * m, unfolded=n_bytes * taken // max(n, 1))
        table = frame_of(file.read() if rows is None else _rows_of(file, rows))
        if lost := list((Counter(schema.names) - Counter(table)).elements()):
            notes.append(
                f"{len(lost):,} columns of lists, structures or bytes, which are not single values, were "
                f"dropped: {quoted(lost, 5)}."
            )
    except pa.ArrowMemoryError:
        raise MemoryError from None
    except (pa.ArrowException, OSError, EOFError, OverflowError) as error:
        said = " ".join(str(error).split())[:200].rstrip(".")
        raise ValueError(f"{name} is a broken Parquet file ({said}). Save or download it again.") from None
    notes += _sample_note(len(table), n)
    names = named(list(table), notes)
    if len(names) < 2:
        raise ValueError(
            f"{name} has fewer than two columns of single values; a target and a feature are needed."
        )
    if not len(table):
        raise ValueError(f"{name} has no rows. Upload a table with rows.")
    reading = Reading("parquet", "utf-8", "comma", "yes", "point")
    return Source(reading, table.set_axis(names, axis=1), notes=tuple(notes))


def _rows_of(file: Any, rows: np.ndarray) -> Any:
    """Return rows of a Parquet file, in ascending order, as an Arrow table, in little memory."""
    import pyarrow as pa

    parts, begin = [], 0
    for batch in file.iter_batches():
        end = begin + len(batch)
        parts.append(batch.take(pa.array(rows[(begin <= rows) & (rows < end)] - begin)))
        begin = end
    return pa.Table.from_batches(parts)
