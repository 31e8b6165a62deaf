"""The package as others install it: built, unpacked elsewhere, and used in a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
SOURCES = (
    "fmviz",
    "pages",
    ".streamlit",
    "app.py",
    "setup.py",
    "pyproject.toml",
    "sample_data",
    "MANIFEST.in",
    "docs",
    "README.md",
    "LICENSE",
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The contents of the wheel, as pip would lay them out."""
    pytest.importorskip("setuptools", "77", reason="make setup-dev installs what builds a wheel offline")
    place = tmp_path_factory.mktemp("wheel")
    # A copy, since a build leaves its own folders beside the sources.
    checkout = place / "checkout"
    checkout.mkdir()
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, checkout)
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index"),
            *("--disable-pip-version-check", "--quiet", "--wheel-dir", str(place), str(checkout)),
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    (wheel,) = place.glob("fmviz-*.whl")
    site = place / "site"
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
    shutil.rmtree(checkout)
    return site


def run(site: Path, *arguments: str) -> str:
    """Run Python outside the checkout, with the unpacked wheel; return what it prints."""
    environment = dict(os.environ)
    # Without compilation, which would take longer than all the rest.
    environment |= {"PYTHONPATH": str(site), "NUMBA_DISABLE_JIT": "1", "FMVIZ_CACHE_DIR": str(site / "cache")}
    run = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=site, env=environment, timeout=300
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_it_holds_all_that_the_package_and_the_pages_are(installed):
    def files(folder: Path) -> set[str]:
        return {
            str(p.relative_to(folder))
            for p in folder.rglob("*")
            if p.is_file() and "__pycache__" not in p.parts
        }

    package = installed / "fmviz"
    assert files(ROOT / "fmviz") <= files(package)
    assert {"ui/icon.png", "stage/stage.js", "py.typed"} <= files(package)
    app = files(package / "app")
    assert app == {
        "app.py",
        ".streamlit/config.toml",
        "docs/glossary.md",
        "sample_data/bike.csv",
        "sample_data/flights.csv",
        *(f"pages/{p.name}" for p in (ROOT / "pages").glob("*.py")),
    }
    (info,) = installed.glob("fmviz-*.dist-info")
    assert "fmviz = fmviz.__main__:main" in (info / "entry_points.txt").read_text()
    # Tests, benchmarks and reproductions of papers are no part of it.
    assert {p.name for p in installed.iterdir() if p.is_dir()} == {"fmviz", info.name}


def test_it_is_in_working_order(installed):
    said = run(installed, "-m", "fmviz", "doctor")
    assert "Everything works." in said
    assert str(installed) in run(installed, "-c", "import fmviz; print(fmviz.__file__)")
    entry = run(installed, "-c", "from fmviz.cli.serve import entry_page; print(entry_page())")
    assert Path(entry.strip()) == installed / "fmviz" / "app" / "app.py"


def test_our_results_come_with_it(installed):
    script = (
        "from fmviz.lab.papers import shipped_result\n"
        "print(len(shipped_result('atarashi2021_fig2').tables['counts']))\n"
    )
    assert int(run(installed, "-c", script)) > 100
    assert "python -m papers atarashi2021_fig2" in run(installed, "-m", "fmviz", "paper", "fig2")


def test_its_pages_draw_themselves(installed):
    script = (
        "from streamlit.testing.v1 import AppTest\n"
        "from fmviz.cli.serve import entry_page\n"
        "app = AppTest.from_file(str(entry_page()), default_timeout=120).run()\n"
        "assert not app.exception, app.exception\n"
        "print(app.title[0].value)\n"
    )
    assert run(installed, "-c", script).strip()
