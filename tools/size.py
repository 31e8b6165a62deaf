"""Count statements and files, and fail if there are over 1 % more than the table below states.

    python tools/size.py

The table states the sizes reached. Imports and docstrings do not count as statements; long lines or missing
docstrings bring no advantage. A change that removes code lowers the table to its result; only an allowance
that an issue names raises it.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Size(NamedTuple):
    """The size of a folder of Python sources."""

    statements: int
    files: int


REACHED = {
    "fmviz": Size(statements=25_718, files=332),
    "tests": Size(statements=17_156, files=205),
    "papers": Size(statements=1_595, files=11),
    "bench": Size(statements=1_339, files=21),
}
SLACK = 1.01


def is_counted(node: ast.AST) -> bool:
    """Return whether a node is a statement other than an import or a docstring."""
    if isinstance(node, ast.Expr):
        return not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str))
    return isinstance(node, ast.stmt) and not isinstance(node, ast.Import | ast.ImportFrom)


def size_of(folder: Path) -> Size:
    """Return the size of a folder, including subfolders."""
    files = sorted(folder.rglob("*.py"))
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    return Size(sum(map(is_counted, nodes)), len(files))


def main() -> int:
    """Print every count with the size in the table; return 1 if any exceeds it by more than the slack."""
    exceeded = False
    for name, reached in REACHED.items():
        for unit, count, size in zip(Size._fields, size_of(ROOT / name), reached, strict=True):
            exceeded |= (over := count > SLACK * size)
            print(f"{name:<6} {count:>7,} {unit:<10} of {size:,}{'   over 1 % more' if over else ''}")
    if exceeded:
        print("Remove dispensable code until the counts fit, or see the docstring of tools/size.py.")
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
