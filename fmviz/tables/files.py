"""Detect the format and the text encoding of a file, and read it as a table or as libsvm."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from dataclasses import replace
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from fmviz.engine.errors import LARGEST
from fmviz.tables.limits import UPLOADS, Limits
from fmviz.tables.parquet import read_parquet
from fmviz.tables.source import ENCODINGS, Reading, Source
from fmviz.tables.text import read_text

__all__ = ["GZIP", "detect", "read", "read_unfolded", "unfolded"]

_SAMPLE = 65_536
_LINES = 50
GZIP = b"\x1f\x8b"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_LIBSVM_LINE = re.compile(r"[-+.\w]+(\s+qid:\d+)?(\s+\d+:[-+.\w]+)*\s*(#.*)?")
_LIBSVM_PAIR = re.compile(r"[-+.,\w]+(\s+qid:\d+)?\s+\d+:[-+.\w]+(\s.*)?")
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
_CONTROLS = tuple(bytes([c]) for c in (*range(1, 9), *range(14, 27), *range(28, 32)))

# The first bytes of other files, with a description and advice.
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\xd0\xcf\x11\xe0", "an old Excel or Word file; open it there and save it as CSV in UTF-8"),
    (b"\x89PNG", "a picture (PNG); upload the table that it shows"),
    (b"\xff\xd8\xff", "a picture (JPEG); upload the table that it shows"),
    (b"GIF8", "a picture (GIF); upload the table that it shows"),
    (b"BM6", "a picture (BMP); upload the table that it shows"),
    (b"%PDF", "a PDF document; copy its table into a spreadsheet and save that as CSV"),
    (b"SQLite format 3", "an SQLite database; export one of its tables as CSV"),
    (b"\x89HDF", "an HDF5 file; save its table as Parquet or CSV"),
    (b"ARROW1", "a Feather file; save it as Parquet"),
    (b"\x93NUMPY", "a NumPy array; save it as CSV with the names of its columns"),
    (b"BZh", "compressed with bzip2; unpack it, or compress it with gzip"),
    (b"\xfd7zXZ", "compressed with xz; unpack it, or compress it with gzip"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd; unpack it, or compress it with gzip"),
    (b"7z\xbc\xaf", "a 7z archive; unpack it and upload the table in it"),
    (b"Rar!", "a RAR archive; unpack it and upload the table in it"),
    (b"\x7fELF", "a program; upload a table"),
    (b"MZ\x90", "a program; upload a table"),
    (b"{\\rtf", "a formatted text; save its table as CSV"),
    (b"Obj\x01", "an Avro file; save it as Parquet or CSV"),
    (b"ORC", "an ORC file; save it as Parquet or CSV"),
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
        The options; those that are "auto" are detected.
    name : str
        The name of the file in messages.
    within : Limits, optional
        The limits, by default those of uploads.

    Raises
    ------
    ValueError
        If the file has another format, or is too large.
    """
    asked, within = asked or Reading(), within or UPLOADS
    within.check(name, file=len(data))
    return read_unfolded(unfolded(data, name, within), asked, name, within)


def read_unfolded(data: bytes, asked: Reading, name: str, within: Limits) -> Source:
    """Read a file as `read` does, without decompression."""
    kind = detect(data, name) if asked.kind == "auto" else asked.kind
    if kind == "parquet":
        return read_parquet(data, name, within)
    notes: list[str] = []
    text, encoding = _decoded(data, asked.encoding, name, notes)
    if kind == "libsvm":
        X, y, base = _libsvm(text, asked.base, name, within)
        reading = Reading(kind, encoding, "blanks", "no", "point", base=base)
        return Source(reading, None, X, y, tuple(notes))
    return read_text(text, replace(asked, kind=kind, encoding=encoding), name, notes, within)


def detect(data: bytes, name: str = "The file") -> str:
    """Return "table", "libsvm" or "parquet"; raises ValueError with advice for other formats."""
    blanks = b"\x00 \t\r\n\xef\xbb\xbf"
    head = data[:_SAMPLE]
    if not head.strip(blanks) and not (head := data.lstrip(blanks)[:_SAMPLE]):
        raise ValueError(f"{name} is empty. Upload a table whose first line names its columns.")
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"PK\x03\x04"):
        sheet = b"xl/" in data[:4096] or b"[Content_Types].xml" in data[:4096] or b"mimetype" in data[:64]
        what = (
            "a spreadsheet; open it there and save it as CSV in UTF-8"
            if sheet
            else ("a ZIP archive; unpack it and upload the table in it")
        )
        raise ValueError(f"{name} is {what}.")
    for signature, what in _SIGNATURES:
        if head.startswith(signature):
            raise ValueError(f"{name} is {what}.")
    if head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05":
        raise ValueError(
            f"{name} is a Python pickle, which could run anything and is never opened. Save it as Parquet "
            "or CSV."
        )
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        raise ValueError(
            f"{name} is a web page, not a table: perhaps a login or an error page was saved in its place. "
            "Download the file again, and look at it in an editor."
        )
    if start.startswith((b"<?xml", b"<svg")):
        raise ValueError(f"{name} is an XML document. Export its table as CSV.")
    if re.match(rb"(\{\s*[\"}]|\[\s*[\[{])", start):
        raise ValueError(f"{name} is JSON. Save it as CSV or Parquet, one row an example.")
    wide = head.startswith(_UTF16) or _utf16_without_mark(head) is not None
    controls = sum(map(head.count, _CONTROLS)) + (0 if wide else 5 * head.count(0))
    if controls > 0.05 * len(head):
        raise ValueError(f"{name} is no text but binary data. Upload CSV, TSV, libsvm or Parquet.")
    lines = head.decode("utf-8", errors="replace").splitlines()
    lines = [line.strip() for line in lines[:_LINES] if line.strip() and line[0] != "#"]
    for pattern, what in _OTHERS:
        if lines and sum(pattern.fullmatch(line) is not None for line in lines) > 0.8 * len(lines):
            raise ValueError(f"{name} is {what}.")
    # A row may have no features.
    pairs = sum(_LIBSVM_PAIR.fullmatch(line) is not None for line in lines)
    return "libsvm" if pairs > 0.5 * len(lines) else "table"


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


def _utf16_without_mark(head: bytes) -> str | None:
    even, odd = head[0:4096:2].count(0), head[1:4096:2].count(0)
    half = len(head[:4096]) / 2
    if odd > 0.4 * half and even < 0.05 * half:
        return "utf-16-le"
    return "utf-16-be" if even > 0.4 * half and odd < 0.05 * half else None


def _decoded(data: bytes, asked: str, name: str, notes: list[str]) -> tuple[str, str]:
    """Return the decoded text and its encoding."""
    encoding = _encoding(data) if asked == "auto" else asked
    python = {"utf-8": "utf-8-sig"}.get(encoding, encoding)
    if encoding == "utf-16" and not data.startswith(_UTF16):
        python = _utf16_without_mark(data[:4096]) or "utf-16-le"
    text = data.decode(python, errors="replace")
    if (lost := text.count("\ufffd")) and asked != "auto":
        notes.append(f"{lost:,} characters are none of the encoding {encoding}; choose another.")
    elif lost:
        notes.append(f"{lost:,} characters could not be read as {encoding}.")
    if encoding not in ("utf-8", "utf-16") and asked == "auto":
        notes.append(f"The text is no UTF-8; it was taken for {encoding}. Look whether its words are right.")
    if "\x00" in text:
        notes.append(f"{text.count(chr(0)):,} NUL characters were left out.")
        text = text.replace("\x00", "")
    return text, encoding


def _encoding(data: bytes) -> str:
    if data.startswith(_UTF16) or _utf16_without_mark(data[:4096]):
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
        # The most common encoding, where it makes no difference or nothing else is likely.
        if best is None or best.encoding not in ENCODINGS or str(best) == sample.decode("cp1252", "replace"):
            return "cp1252"
        return best.encoding
    return "utf-8"


# ------------------------------------------------------------------------------------------------- libsvm


def _libsvm(text: str, base: str, name: str, within: Limits) -> tuple[sp.csr_array, np.ndarray, str]:
    """Return X, shape (N, d), the target, shape (N,), and the index of the first feature."""
    from sklearn.datasets import load_svmlight_file

    # scikit-learn refuses an index beyond 32 bits with a misleading message.
    far = max((int(index) for index in re.findall(r"\s(\d{7,60}):", text)), default=0)
    within.check(name, rows=text.count("\n"), values=text.count(":"), index=far)
    if base == "auto":
        base = "0" if re.search(r"\s0:", text) else "1"
    try:
        X, y = load_svmlight_file(io.BytesIO(text.encode()), zero_based=base == "0")
    except (ValueError, OverflowError, MemoryError) as error:
        raise ValueError(f"{name} cannot be read as libsvm: {_bad_line(text, base) or error}.") from None
    if not X.shape[0] or not X.shape[1]:
        raise ValueError(f"{name} has no rows or no features.")
    within.check(name, index=X.shape[1])
    X = sp.csr_array(X, dtype=np.float64)
    for values in (X.data, y):
        if not (fits := np.abs(values) <= LARGEST).all():
            raise ValueError(f"{name} holds the value {values[~fits][0]:g}; take it out, or change its unit.")
    return X, y, base


def _bad_line(text: str, base: str) -> str:
    """Return which line of a text is none of libsvm, what it holds, and what to do; or ""."""
    for number, line in enumerate(text.splitlines(), 1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        shown = content if len(content) <= 60 else content[:59] + "…"
        label, *pairs = content.split()
        if re.fullmatch(r"[^:,]+(,[^:,]+)+", label):
            return (
                f"line {number:,} has several labels ({label}), and one is predicted. Give a table with a column "
                "of 0 and 1 for each label"
            )
        indices = [pair.partition(":")[0] for pair in pairs if not pair.startswith("qid:")]
        if _LIBSVM_LINE.fullmatch(content) is None:
            pair = next((pair for pair in pairs if not re.fullmatch(r"(qid|\d+):[-+.\w]+", pair)), label)
            return (
                f"line {number:,} holds {pair!r} ({shown}), where index:value is expected. Mend or remove it"
            )
        if base == "1" and "0" in indices:
            return f"line {number:,} has the index 0 ({shown}), and they start at 1. `--read base=0` takes 0 for the first"
        if any(int(a) >= int(b) for a, b in pairwise(indices)):
            return f"line {number:,} has indices that do not ascend ({shown}). Sort its entries"
        for cell in (label, *(pair.partition(":")[2] for pair in pairs)):
            try:
                float(cell)
            except ValueError:
                return f"line {number:,} holds {cell!r} ({shown}), which is no number. Mend or remove it"
    return ""
