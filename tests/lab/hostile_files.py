"""Hostile or mistaken uploads: for each a name, its bytes, and the expected message."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import random
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

SCRIPT = "<script>window.hacked=1</script>"
IMAGE = "<img src=x onerror=window.hacked=1>"


@dataclass(frozen=True)
class Hostile:
    """A file.

    Attributes
    ----------
    name : str
        Its name.
    make : callable
        Returns its bytes.
    refused : bool
        Whether it cannot be read at all; else it is read, perhaps with notes, or needs a decision.
    says : str
        Words of the sentence, or of a note.
    """

    name: str
    make: Callable[[], bytes]
    refused: bool
    says: str = ""


def rows(n: int = 60, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "a": rng.normal(size=n).round(3),
            "b": rng.choice(["x", "y", "z"], n),
            "y": rng.normal(size=n).round(3),
        }
    )


def csv(table: pd.DataFrame, **options) -> bytes:
    return table.to_csv(index=False, **options).encode()


def renamed(*names: str) -> bytes:
    return csv(rows().set_axis(list(names), axis=1))


def parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def zipped(**members: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "/").replace("_dot_", "."), data)
    return sink.getvalue()


def wide(columns: int, n: int = 2) -> bytes:
    lines = [",".join(f"c{j}" for j in range(columns))]
    lines += [",".join(str((i * j) % 7) for j in range(columns)) for i in range(n)]
    return "\n".join(lines).encode()


def bomb(size: int) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    block = b"1,2,3\n" * 200_000
    parts = [packer.compress(b"a,b,y\n")]
    parts += [packer.compress(block) for _ in range(size // len(block) + 1)]
    return b"".join([*parts, packer.flush()])


def endless_rows() -> bytes:
    return b"a,b\n" + b"1,2\n" * 1_000_100


class Evil:
    def __reduce__(self):
        import os

        return os.system, ("touch /tmp/fmviz-was-hacked",)


def _nested() -> bytes:
    table = pa.table(
        {
            "a": pa.array(range(40), pa.int64()),
            "list": pa.array([[i, i] for i in range(40)]),
            "struct": pa.array([{"p": i, "q": "x"} for i in range(40)]),
            "map": pa.array([[("k", i)] for i in range(40)], pa.map_(pa.string(), pa.int64())),
            "bytes": pa.array([b"\x00\xff"] * 40),
            "y": pa.array([i % 5 * 1.5 for i in range(40)]),
        }
    )
    return parquet(table)


def _times() -> bytes:
    when = pd.date_range("2024-01-01 06:00", periods=60, freq="37h", tz="Europe/Berlin")
    return csv(rows().assign(when=when, zulu=[f"{t:%Y-%m-%dT%H:%M:%S}Z" for t in when]))


FILES: tuple[Hostile, ...] = (
    # What is no table at all.
    Hostile("empty.csv", lambda: b"", True, "is empty"),
    Hostile("blank.csv", lambda: b" \r\n\t\n \n", True, "is empty"),
    Hostile("nul.csv", lambda: b"\x00" * 5_000, True, "is empty"),
    Hostile("junk.csv", lambda: random.Random(0).randbytes(50_000), True, "binary data"),
    Hostile(
        "junk.parquet", lambda: b"PAR1" + random.Random(1).randbytes(5_000) + b"PAR1", True, "broken Parquet"
    ),
    Hostile("page.csv", lambda: b"<!DOCTYPE html><html><body>Please log in</body></html>", True, "web page"),
    Hostile(
        "page2.csv",
        lambda: "\ufeff\n <html><table><tr><td>1</td></tr></table></html>".encode(),
        True,
        "web page",
    ),
    Hostile("drawing.csv", lambda: b'<?xml version="1.0"?><svg onload="alert(1)"/>', True, "XML"),
    Hostile("rows.json.csv", lambda: json.dumps([{"a": 1, "y": 2}] * 9).encode(), True, "JSON"),
    Hostile("archive.zip", lambda: zipped(data_dot_csv=b"a,b\n1,2\n"), True, "ZIP archive"),
    Hostile("book.xlsx", lambda: zipped(xl__workbook_dot_xml=b"<workbook/>"), True, "spreadsheet"),
    Hostile("old.xls", lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), True, "Excel"),
    Hostile("photo.png.csv", lambda: b"\x89PNG\r\n\x1a\n" + bytes(300), True, "picture"),
    Hostile("photo.jpg", lambda: b"\xff\xd8\xff\xe0" + bytes(300), True, "picture"),
    Hostile("paper.pdf", lambda: b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", True, "PDF"),
    Hostile("model.pkl", lambda: pickle.dumps(Evil()), True, "pickle"),
    Hostile("array.npy", lambda: b"\x93NUMPY\x01\x00v\x00{'descr': '|O'}", True, "NumPy"),
    Hostile("base.sqlite", lambda: b"SQLite format 3\x00" + bytes(500), True, "SQLite"),
    Hostile("program.csv", lambda: b"\x7fELF\x02\x01\x01" + bytes(500), True, "program"),
    Hostile("packed.csv.bz2", lambda: b"BZh91AY&SY" + bytes(100), True, "bzip2"),
    # Compressed.
    Hostile("bomb.csv.gz", lambda: bomb(260_000_000), True, "decompresses to more than"),
    Hostile("cut.csv.gz", lambda: gzip.compress(csv(rows(500)))[:-200], True, "broken gzip"),
    Hostile("twice.csv.gz", lambda: gzip.compress(gzip.compress(csv(rows()))), True, "binary data"),
    Hostile("two members.csv.gz", lambda: gzip.compress(b"a,y\n1,2\n") + gzip.compress(b"2,3\n5,1\n"), False),
    # Too large.
    Hostile("endless.csv", endless_rows, False, "1,000,000 of 1,000,100 rows, drawn at random"),
    Hostile("wide.csv", lambda: wide(20_000), True, "20,000 columns"),
    Hostile("one line.csv", lambda: b"a,b," * 250_000, True, "columns"),
    Hostile("long field.csv", lambda: b'a,y\n"' + b"x" * 300_000 + b'",1\nq,2\n', True, "field"),
    Hostile("far.libsvm", lambda: b"1 1:1 1099511627776:2\n-1 2:1\n", True, "1,099,511,627,776"),
    # Shapes.
    Hostile("one column.csv", lambda: b"a\n1\n2\n3\n", True, "has one column"),
    Hostile("one word.txt", lambda: b"hello", True, "has one column"),
    Hostile("prose.txt", lambda: b"It was a dark night.\nThe rain fell.\nNobody came.\n", True, "one column"),
    Hostile("header only.csv", lambda: b"a,b,y\n", True, "no rows below"),
    Hostile("one row.csv", lambda: b"a,b,y\n1,2,3\n", False, "two rows|always|nothing to predict|same value"),
    Hostile("ragged.csv", lambda: b"a,b,y\n1,2,3\n1,2,3,4,5\n3,2,1\n2,2,5\n", True, "fields"),
    Hostile("ragged first.csv", lambda: b"Report of May\n\na,b,y\n1,2,3\n3,4,5\n", False, "above the table"),
    Hostile("a wide row further down.csv", lambda: b",\n" + b"1,2,\n" * 40 + b"1,2,3\n", False),
    Hostile("short rows.csv", lambda: csv(rows()) + b"7\n8\n9\n", False),
    Hostile("open quote.csv", lambda: b'a,b,y\n1,"x,2\n' + b"1,x,2\n" * 50, True, "never closed"),
    Hostile("only commas.csv", lambda: b",,,\n,,,\n,,,\n", True, "only delimiters"),
    # Delimiters and encodings.
    Hostile("wrong delimiter.csv", lambda: csv(rows(), sep="~"), True, "has one column"),
    Hostile("semicolons.csv", lambda: csv(rows(), sep=";", decimal=","), False),
    Hostile("sep line.csv", lambda: b"sep=;\r\n" + csv(rows(), sep=";"), False),
    Hostile(
        "latin.csv",
        lambda: csv(rows().replace({"x": "Köln", "y": "Größe"})).decode().encode("latin-1"),
        False,
        "not UTF-8",
    ),
    Hostile(
        "mixed encodings.csv",
        lambda: csv(rows()) + "1,é,2\n".encode() + b"1,\xff\xfe\xe9,2\n",
        False,
        "UTF-8",
    ),
    Hostile(
        "japanese.csv",
        lambda: (
            csv(rows().replace({"x": "東京都", "y": "大阪府", "z": "京都府"})).decode().encode("shift_jis")
        ),
        False,
    ),
    Hostile("utf16.csv", lambda: csv(rows()).decode().encode("utf-16"), False),
    Hostile("utf16 bare.csv", lambda: csv(rows()).decode().encode("utf-16-le"), False),
    Hostile("bom.csv", lambda: b"\xef\xbb\xbf" + csv(rows()), False),
    Hostile("cr only.csv", lambda: csv(rows()).replace(b"\n", b"\r"), False),
    Hostile("some nul.csv", lambda: csv(rows(400)).replace(b"x", b"\x00x", 3), False, "NUL"),
    # Names.
    Hostile("duplicates.csv", lambda: renamed("a", "a", "y"), False, "the name of another"),
    Hostile("unnamed.csv", lambda: renamed("", " ", "y"), False, "no name"),
    Hostile("no header.csv", lambda: csv(rows()[["a", "y"]], header=False), False, "read as a row"),
    Hostile("scripts.csv", lambda: renamed(SCRIPT, IMAGE, "y"), False),
    Hostile(
        "script levels.csv",
        lambda: csv(rows().replace({"x": SCRIPT, "y": IMAGE, "z": "[a](javascript:alert(1))"})),
        False,
    ),
    Hostile("formulas.csv", lambda: renamed("=HYPERLINK(1+1)", "@SUM(A1)", "-2+3|cmd"), False),
    Hostile(
        "markdown.csv",
        lambda: renamed("**a** [x](http://x) :material/home:", "$\\frac{1}{2}$ `b`", "# y"),
        False,
    ),
    Hostile("long names.csv", lambda: renamed("n" * 20_000, "m" * 20_000, "y"), False, "was cut"),
    Hostile("emoji.csv", lambda: renamed("🦊 length", "e\u0301\u202eb", "🎯"), False),
    Hostile("index names.csv", lambda: renamed("__proto__", "constructor", "None"), False),
    Hostile("../../etc/passwd.csv", lambda: csv(rows()), False),
    Hostile(f"{SCRIPT}.csv", lambda: csv(rows()), False),
    # Values.
    Hostile(
        "levels.csv",
        lambda: csv(
            pd.DataFrame({"w": [f"w{i // 2}" for i in range(20_000)], "y": np.arange(20_000) % 97 / 7})
        ),
        False,
        "none of its 10,000 words is in 5 rows",
    ),
    Hostile(
        "infinite.csv",
        lambda: csv(rows()) + b"inf,x,1\n-inf,y,2\n1e400,z,3\n",
        False,
        "3 cells such as 'inf' are not numbers",
    ),
    Hostile("mixed types.csv", lambda: csv(rows(200)) + b"n/k,x,1\nbroken,y,2\n", False, "not numbers"),
    Hostile("thousands.csv", lambda: csv(rows().assign(a=[f"{1000 * i:,}" for i in range(1, 61)])), False),
    Hostile("huge numbers.csv", lambda: csv(rows().assign(a=[10 ** (i % 40 + 1) for i in range(60)])), False),
    Hostile("constant.csv", lambda: b"a,b,y\n" + b"1,x,2\n" * 30, False, "same value|always|nothing"),
    Hostile("same target.csv", lambda: csv(rows().assign(y=3)), False, "same value|always"),
    Hostile("no target.csv", lambda: csv(rows().assign(y=np.nan)), False, "no values"),
    Hostile(
        "identifier.csv",
        lambda: csv(pd.DataFrame({"id": range(100), "uuid": [f"{i:032x}" for i in range(100)]})),
        False,
        "identifier",
    ),
    Hostile("three classes.csv", lambda: csv(rows()[["a", "b"]].assign(class_=rows()["b"])), False),
    Hostile(
        "all missing.csv", lambda: b"a,b,y\n" + b",,\n" * 5 + b"NA,?,\n" * 30, False, "no values|no rows"
    ),
    Hostile("zones.csv", _times, False),
    Hostile(
        "impossible dates.csv",
        lambda: csv(rows().assign(when=["2024-02-31", "0001-01-01", "9999-12-31"] * 20)),
        False,
    ),
    Hostile(
        "many members.csv.gz",
        lambda: gzip.compress(b"") * 40_000 + gzip.compress(csv(rows())),
        False,
    ),
    Hostile(
        "more digits than numbers have.csv",
        lambda: csv(rows().assign(a="9" * 400, c="1e308", d=["5", "9" * 400] * 30)),
        False,
    ),
    Hostile("a long blank line.csv", lambda: b" " * 500_000 + b"\n" + csv(rows()), False),
    # libsvm.
    Hostile("huge.libsvm", lambda: b"1 1:1e308\n-1 2:1\n", True, r"1e\+308"),
    Hostile("negative.libsvm", lambda: b"1 -1:2 3:4\n-1 2:1\n", True, ""),
    Hostile("unsorted.libsvm", lambda: b"1 3:2 1:4\n-1 2:1\n", True, "libsvm"),
    Hostile("ranking.libsvm", lambda: b"2 qid:1 1:0.5 2:1\n1 qid:1 1:0.1\n0 qid:2 2:3\n" * 9, False),
    Hostile("labels.libsvm", lambda: b"1,2 1:1\n3 1:2\n", True, "libsvm"),
    Hostile("not finite.libsvm", lambda: b"1 1:nan\n-1 2:1\n", True, "nan"),
    # Parquet.
    Hostile("cut.parquet", lambda: parquet(pa.Table.from_pandas(rows()))[:-40], True, "broken Parquet"),
    Hostile("nested.parquet", _nested, False, "lists, structures"),
    Hostile(
        "no rows.parquet",
        lambda: parquet(pa.table({"a": pa.array([], pa.int64()), "y": pa.array([], pa.float64())})),
        True,
        "no rows",
    ),
    Hostile(
        "doubles.parquet",
        lambda: parquet(
            pa.Table.from_arrays(
                [pa.array(range(30)), pa.array(range(30, 60)), pa.array([i % 7 / 3 for i in range(30)])],
                ["a", "a", "y"],
            )
        ),
        False,
        "the name of another",
    ),
    Hostile(
        "types.parquet",
        lambda: parquet(
            pa.table(
                {
                    "d": pa.array(pd.date_range("2024", periods=40)).cast(pa.date32()),
                    "t": pa.array(pd.date_range("2024", periods=40, tz="UTC")),
                    "s": pa.array(["u", "v"] * 20).dictionary_encode(),
                    "y": pa.array([i % 9 / 2 for i in range(40)]).cast(pa.float32()),
                }
            )
        ),
        False,
    ),
)


def refused() -> Iterator[Hostile]:
    """Return the files that cannot be read at all."""
    return (file for file in FILES if file.refused)
