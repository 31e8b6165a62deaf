"""Count statements, files and functions, and fail if there are more than the budget allows.

    python tools/size.py

Imports and docstrings do not count as statements; long lines or missing docstrings bring no advantage. A
change that removes code lowers the numbers below to its result.
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
    functions: int


BUDGET = {
    "fmviz": Size(statements=25_009, files=331, functions=3_245),
    "tests": Size(statements=16_010, files=200, functions=1_990),
    "papers": Size(statements=1_407, files=10, functions=152),
    "bench": Size(statements=1_341, files=21, functions=172),
}


def is_counted(node: ast.AST) -> bool:
    """Return whether a node is a statement other than an import or a docstring."""
    if isinstance(node, ast.Expr):
        return not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str))
    return isinstance(node, ast.stmt) and not isinstance(node, ast.Import | ast.ImportFrom)


def size_of(folder: Path) -> Size:
    """Return the size of a folder, including subfolders."""
    files = sorted(folder.rglob("*.py"))
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    functions = sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes)
    return Size(sum(map(is_counted, nodes)), len(files), functions)


def main() -> int:
    """Print every count with its budget; return 1 if any is exceeded."""
    exceeded = False
    for name, budget in BUDGET.items():
        for unit, count, most in zip(Size._fields, size_of(ROOT / name), budget, strict=True):
            exceeded |= count > most
            print(f"{name:<6} {count:>7,} {unit:<10} of {most:,}{'   over budget' if count > most else ''}")
    if exceeded:
        print("Remove dispensable code until the counts fit; the budget in tools/size.py never increases.")
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
