"""What depends on a penalty, a loss or a model is asked of it, not read off its name."""

from __future__ import annotations

import ast
from pathlib import Path

import fmviz
from fmviz.engine.losses import LOSSES
from fmviz.engine.models import MODELS
from fmviz.engine.penalties import PENALTIES

PACKAGE = Path(fmviz.__file__).parent
NAMES = {*PENALTIES, *LOSSES, *MODELS}
OWN = [PACKAGE / "engine" / kind for kind in ("penalties", "losses", "models")]
OPERATORS = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)


def strings(node: ast.AST) -> set[str]:
    """Return the strings that a side of a comparison consists of."""
    if isinstance(node, ast.Constant):
        return {node.value} if isinstance(node.value, str) else set()
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else ()
    return {text for part in parts for text in strings(part)}


def comparisons_with_names(source: str) -> list[str]:
    pairs = []
    for node in ast.walk(ast.parse(source)):
        sides: list[ast.AST] = []
        if isinstance(node, ast.Compare) and any(isinstance(operator, OPERATORS) for operator in node.ops):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            sides = [node.value]
        if any(strings(side) & NAMES for side in sides):
            pairs.append(ast.unparse(node))
    return pairs


def test_no_name_is_tested_outside_its_own_folder():
    tested = {
        f"{path.relative_to(PACKAGE)}: {pair}"
        for path in PACKAGE.rglob("*.py")
        if not any(folder in path.parents for folder in OWN)
        for pair in comparisons_with_names(path.read_text(encoding="utf-8"))
    }
    assert not tested
