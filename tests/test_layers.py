"""The layers hold: who may import whom."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "fmviz"
ENTRY = [ROOT / "app.py", *sorted((ROOT / "pages").glob("*.py"))]

FORBIDDEN = {
    "fmviz/engine": (
        "pandas",
        "plotly",
        "streamlit",
        "sklearn",
        "joblib",
        "fmviz.lab",
        "fmviz.figures",
        "fmviz.ui",
    ),
    "fmviz/figures": ("streamlit", "fmviz.engine", "fmviz.lab", "fmviz.ui"),
    "fmviz/lab": ("streamlit", "plotly", "fmviz.figures", "fmviz.ui"),
    "fmviz/report.py": ("streamlit", "fmviz.ui", "fmviz.cli"),
    "fmviz/estimators": ("streamlit", "plotly", "fmviz.lab", "fmviz.figures", "fmviz.ui"),
    "fmviz/metrics.py": ("streamlit", "plotly", "fmviz.lab", "fmviz.figures", "fmviz.ui"),
}


def imports(path: Path) -> set[str]:
    """Return every imported module of a file as a full dotted name, relative ones resolved."""
    found = set()
    package = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ""
            if node.level:
                level = node.level - (path.name == "__init__.py")
                parts = package.removesuffix(".__init__").split(".")
                base = ".".join(parts[: len(parts) - level] if level else parts)
            module = ".".join(x for x in (base, node.module or "") if x)
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return found


def files(place: str) -> list[Path]:
    path = ROOT / place
    return [path] if path.suffix else sorted(path.rglob("*.py"))


@pytest.mark.parametrize("place", FORBIDDEN)
def test_layer_imports_nothing_above_it(place):
    for path in files(place):
        banned = FORBIDDEN[place]
        for name in imports(path):
            assert name not in banned, f"{path} imports {name}"
            assert not name.startswith(tuple(f"{b}." for b in banned)), f"{path} imports {name}"


def test_only_entry_pages_and_the_ui_import_the_ui():
    for path in sorted(PACKAGE.rglob("*.py")):
        if PACKAGE / "ui" not in path.parents:
            assert not any(n.startswith(("fmviz.ui", "streamlit")) for n in imports(path)), path


def test_entry_pages_are_thin():
    for path in ENTRY:
        body = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        assert len(body) <= 6, f"{path} has {len(body)} lines"


def test_modules_stay_small():
    for path in sorted(PACKAGE.rglob("*.py")):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines <= 450, f"{path} has {lines} lines"
