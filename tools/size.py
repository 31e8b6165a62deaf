"""How large the code is: lines, modules in a folder, and functions with many parameters.

    python tools/size.py

Kernels, which are called with every array by itself, and the ``__init__`` of estimators, which are written
out, are not counted among the functions.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_PARAMETERS = 8
_COMPILED = {"cached_factory", "jitable", "kernel"}


def decorators(node: ast.FunctionDef) -> set[str]:
    """Return the names of a function's decorators."""
    return {name.id for one in node.decorator_list for name in ast.walk(one) if isinstance(name, ast.Name)}


def parameters(node: ast.FunctionDef) -> int:
    """Return how many named parameters a function has, self and cls aside."""
    names = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def long_signatures(path: Path) -> list[tuple[str, int]]:
    """Return the functions of a file that have more than `MOST_PARAMETERS` parameters, with their number."""
    found: list[tuple[str, int]] = []

    def walk(node: ast.AST, compiled: bool) -> None:
        for child in ast.iter_child_nodes(node):
            inside = compiled
            if isinstance(child, ast.FunctionDef):
                written_out = child.name == "__init__" and path.is_relative_to(ROOT / "fmviz" / "estimators")
                inside = compiled or bool(decorators(child) & _COMPILED)
                if not inside and not written_out and parameters(child) > MOST_PARAMETERS:
                    found.append((child.name, parameters(child)))
            walk(child, inside)

    walk(ast.parse(path.read_text(encoding="utf-8")), False)
    return found


def main() -> None:
    """Print the counts."""
    files = sorted((ROOT / "fmviz").rglob("*.py"))
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
    folders = Counter(path.parent for path in files if path.name != "__init__.py")
    most = max(folders.values())
    found = [(path.relative_to(ROOT), *one) for path in files for one in long_signatures(path)]
    print(f"{lines:,} lines in {len(files)} files; {most} modules in the largest folder")
    print(f"{len(found)} functions with more than {MOST_PARAMETERS} parameters:")
    for path, name, count in found:
        print(f"  {path}: {name}, {count}")


if __name__ == "__main__":
    main()
