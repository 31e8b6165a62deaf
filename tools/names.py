"""Check that no variable, parameter, function or class has a name on the list of forbidden words.

python tools/names.py
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("fmviz", "papers", "tests", "tools", "bench")
WORDS = frozenset(
    ["told", "found", "held", "rest", "left", "whole", "one", "begun", "lacking", "anew", "put", "made"]
)


def bound_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield every name bound in a syntax tree, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or (
            isinstance(node, ast.MatchAs | ast.MatchStar | ast.ExceptHandler) and node.name
        ):
            yield node.name, node.lineno
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname, 0


def scopes(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the module and all its functions and classes."""
    yield tree
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node


def misnamed(path: Path) -> list[str]:
    """Return a line for every forbidden name of a file; `left` is allowed in scopes that bind `right`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    paired: set[int] = set()
    for scope in scopes(tree):
        names = [] if isinstance(scope, ast.Module) else list(bound_names(scope))
        if any(name.lstrip("_") == "right" for name, _ in names):
            paired |= {line for name, line in names if name.lstrip("_") == "left"}
    return [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for name, line in sorted(set(bound_names(tree)), key=lambda pair: pair[1])
        if name.lstrip("_") in WORDS and line not in paired
    ]


def main() -> int:
    """Print the names to replace; return 1 if there are any."""
    files = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    lines = [line for path in files for line in misnamed(path)]
    print("\n".join(lines) or f"no forbidden name in {len(files)} files")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
