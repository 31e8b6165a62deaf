"""The floors of the house: every file has its own, and imports nothing from above it; and no circles."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("layers")  # One process reads the sources.

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "fmviz"
ENTRY = [ROOT / "app.py", *sorted((ROOT / "pages").glob("*.py"))]
PAPERS = sorted((ROOT / "papers").rglob("*.py"))
FILES = [*sorted(PACKAGE.rglob("*.py")), *ENTRY, *PAPERS]


@dataclass(frozen=True)
class Floor:
    """Files and folders, the floors that they may import from besides their own, and the libraries."""

    files: tuple[str, ...]
    below: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()


_TABLES = ("numpy", "pandas")
FLOORS: dict[str, Floor] = {
    "typography": Floor(("fmviz/typography.py",)),
    "checked": Floor(("fmviz/checked.py",), libraries=("annotated_types", "pydantic")),
    "engine": Floor(
        ("fmviz/engine/",), ("typography",), libraries=("numba", "numpy", "scipy", "threadpoolctl")
    ),
    # What there is, by name, and the operators of matrices.
    "names": Floor(("fmviz/choices.py", "fmviz/operators.py"), ("engine",), ("numpy",)),
    # What is imported by ``import fmviz`` itself; the rest of its names come when they are asked for.
    "package": Floor(("fmviz/__init__.py",), ("engine", "names")),
    "metrics": Floor(("fmviz/metrics/",), ("engine",), ("numpy", "scipy")),
    "estimators": Floor(
        ("fmviz/estimators/", "fmviz/paths/"),
        ("typography", "engine", "names", "metrics"),
        (*_TABLES, "dask", "distributed", "scipy", "sklearn"),
    ),
    "tables": Floor(
        ("fmviz/tables/",),
        ("typography", "checked", "engine"),
        (*_TABLES, "annotated_types", "charset_normalizer", "pyarrow", "scipy", "sklearn"),
    ),
    "lab": Floor(
        ("fmviz/lab/",),
        # Of the package the version alone.
        ("typography", "checked", "engine", "names", "metrics", "estimators", "tables", "package"),
        (
            *(*_TABLES, "distributed", "jinja2", "joblib", "numba", "platformdirs"),
            *("pyarrow", "scipy", "sklearn"),
        ),
    ),
    # The public names of what lab has; nothing of ours needs them.
    "datasets": Floor(("fmviz/datasets.py",), ("lab",)),
    "figures": Floor(("fmviz/figures/",), ("typography", "metrics"), (*_TABLES, "plotly", "scipy")),
    # What the browser draws, and its scripts.
    "stage": Floor(("fmviz/stage/",), ("checked", "figures"), ("jinja2", "numpy")),
    "report": Floor(
        ("fmviz/report.py",),
        ("typography", "engine", "metrics", "tables", "lab", "figures", "stage"),
        (*_TABLES, "jinja2", "markupsafe"),
    ),
    "plot": Floor(
        ("fmviz/plot.py",),
        ("engine", "metrics", "estimators", "tables", "lab", "figures", "report"),
        (*_TABLES, "plotly", "sklearn"),
    ),
    "interactive": Floor(
        ("fmviz/interactive.py",),
        ("engine", "metrics", "estimators", "lab", "figures", "stage", "report"),
        ("anywidget", "numpy", "sklearn", "traitlets"),
    ),
    "cli": Floor(
        ("fmviz/cli/", "fmviz/__main__.py"),
        (
            *("typography", "engine", "names", "metrics", "package", "estimators"),
            *("tables", "lab", "figures", "report"),
        ),
        (*_TABLES, "plotly"),
    ),
    "ui": Floor(
        ("fmviz/ui/",),
        (
            *("typography", "checked", "engine", "names", "metrics", "estimators"),
            *("tables", "lab", "figures", "stage", "report", "plot"),
        ),
        (*_TABLES, "jinja2", "plotly", "starlette", "streamlit"),
    ),
    "entry": Floor(("app.py", "pages/"), ("ui",), ("streamlit",)),
    # Beside the package, which does not need it.
    "papers": Floor(
        ("papers/",),
        ("typography", "engine", "metrics", "lab", "figures", "cli", "package"),
        (*_TABLES, "joblib", "plotly", "scipy", "sklearn"),
    ),
}
"""From the ground up."""

BY_NAME = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in FILES}
MODULES = {name.removesuffix(".__init__"): path for name, path in BY_NAME.items()}
NAMES = {path: name for name, path in MODULES.items()}


def floors_of(path: Path) -> list[str]:
    """Return the floors that name a file; a folder names all that is in it."""
    place = path.relative_to(ROOT).as_posix()
    return [
        floor
        for floor, entry in FLOORS.items()
        if any(place.startswith(file) if file.endswith("/") else place == file for file in entry.files)
    ]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def nodes(path: Path, types: bool = True) -> Iterator[ast.AST]:
    """Walk a file; without `types` not into what only type checkers read."""
    waiting: list[ast.AST] = [tree(path)]
    while waiting:
        node = waiting.pop()
        yield node
        if not types and isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting += node.orelse
        # Imports are statements, and in expressions there are none.
        elif isinstance(node, ast.Module | ast.stmt | ast.ExceptHandler | ast.match_case):
            waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]


@cache
def imports(path: Path, types: bool = True) -> frozenset[str]:
    """Return the modules that a file imports anywhere, functions included, as full dotted names.

    Of ``from package import name`` it is the module ``package.name`` where there is such a one of ours, else
    the package.
    """
    package = NAMES[path] if path.name == "__init__.py" else NAMES[path].rpartition(".")[0]
    names = set()
    for node in nodes(path, types):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            base = ".".join([*parts, *([node.module] if node.module else [])])
            inner = (f"{base}.{alias.name}" for alias in node.names)
            names |= {name if name in MODULES else base for name in inner}
    return frozenset(names)


def test_every_file_is_on_one_floor():
    for path in FILES:
        assert len(floors_of(path)) == 1, f"{path} is on the floors {floors_of(path)}; enter it in FLOORS"


def test_every_floor_has_what_it_names():
    for entry in FLOORS.values():
        for file in entry.files:
            assert (ROOT / file).exists(), f"FLOORS names {file}, which is gone"


@pytest.mark.parametrize("floor", FLOORS)
def test_a_floor_imports_nothing_from_above_it(floor):
    allowed = {floor, *FLOORS[floor].below}
    wrong = []
    for path in (file for file in FILES if floors_of(file) == [floor]):
        # To type checkers the package names all that it offers.
        for name in sorted(imports(path, types=floor != "package")):
            top = name.partition(".")[0]
            if name in MODULES:
                right = set(floors_of(MODULES[name])) <= allowed
            elif top == "fmviz":
                right = False  # A module that is not there.
            else:
                right = top in FLOORS[floor].libraries or top in sys.stdlib_module_names
            if not right:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_modules_are_imported_by_name_alone():
    """A module whose name is made at run time would be seen by none of these tests."""
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in FILES}
    calls = ("import_module(", "__import__(", "resolve_name(")
    importing = {name for name, text in texts.items() if any(call in text for call in calls)}
    # The public names of the package, and the commands.
    assert importing == {"fmviz/__init__.py", "fmviz/__main__.py"}


# ------------------------------------------------------------------------------------------- rooms of the lab

ROOMS = (
    *("values", "failure", "files", "quotas", "isolation", "forking", "confined"),
    *("datasets", "untrusted", "uploads", "catalog", "experiment", "runs", "runner", "store", "saved_model"),
    *("background", "interpretation", "search", "importing", "operators", "lessons", "papers"),
)
"""The modules and packages of ``fmviz.lab`` from the ground up: each imports from those before it alone."""


def test_rooms_of_the_lab_are_in_order():
    names = {name for name in MODULES if name.startswith("fmviz.lab.")}
    assert {name.split(".")[2] for name in names} == set(ROOMS)
    rank = {room: i for i, room in enumerate(ROOMS)}
    upward = [
        f"{name} imports {other}"
        for name in sorted(names)
        for other in sorted(imports(MODULES[name]) & names)
        if rank[other.split(".")[2]] > rank[name.split(".")[2]]
    ]
    assert not upward, "\n".join(upward)


# --------------------------------------------------------------------------------------------------- circles


def circle(folder: str) -> list[str]:
    """Return modules of a folder each of which imports the next, the last being the first; [] for none.

    What only type checkers import does not count; neither does that a package gathers its own modules, and
    that these import from the package.
    """
    graph = {
        name: {other for other in imports(path, types=False) if not f"{name}.".startswith(f"{other}.")}
        for name, path in MODULES.items()
        if path.is_relative_to(ROOT / folder)
    }
    inside = {name: {other for other in others if other in graph} for name, others in graph.items()}
    try:
        TopologicalSorter(inside).prepare()
    except CycleError as error:
        names: list[str] = error.args[1]
        return names[::-1]
    return []


@pytest.mark.parametrize("folder", ["fmviz", "papers"])
def test_there_is_no_circle_of_imports(folder):
    assert not circle(folder)


# ------------------------------------------------------------------------------------------------- thin pages


def test_entry_pages_are_thin():
    for path in ENTRY:
        body = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        assert len(body) <= 6, f"{path} has {len(body)} lines"
