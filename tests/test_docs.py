"""README and docs: their links lead somewhere, and what they print of Python runs."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from programs import run_afresh

import fmviz
from fmviz.lab.lessons.steps import lessons
from fmviz.ui.about import PAPERS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
WITH_CODE = [page for page in PAGES if "```python\n" in page.read_text(encoding="utf-8")]


def place(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=place)
def test_links_and_pictures_are_there(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if not target.startswith(("http:", "https:")):
            assert (page.parent / target).exists(), f"{place(page)} links to {target}, which is not there"


def test_every_page_is_in_the_table_of_contents():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in (*(ROOT / "docs" / "guide").glob("*.md"), *(ROOT / "docs").glob("*.md")):
        name = page.relative_to(ROOT / "docs").with_suffix("").as_posix()
        assert name == "index" or f"\n{name}\n" in index


def test_every_lesson_is_illustrated_under_its_title():
    text = (ROOT / "docs" / "lessons.md").read_text(encoding="utf-8")
    listed = [lesson for lesson in lessons().values() if lesson.listed]
    for lesson in listed:
        assert f"## {lesson.order}. {lesson.title}\n\n{lesson.question} {lesson.minutes} minutes.\n" in text
        assert (ROOT / "docs" / f"lesson_{lesson.name}.png").is_file()
    assert text.count("\n## ") == len(listed)


def test_the_readme_counts_what_is_registered():
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    for count, noun in (
        (len(fmviz.list_regularizers()), "regularizers"),
        (len(fmviz.list_losses()), "losses"),
        (len(fmviz.list_solvers()), "solvers"),
        (len(fmviz.list_models()), "models"),
    ):
        assert re.search(rf"\b{count} {noun}\b", text), f"There are now {count} {noun}: change README.md."


def test_the_readme_states_the_speeds_measured():
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    measured = json.loads((ROOT / "bench" / "results" / "bench.json").read_text(encoding="utf-8"))
    one_hot = []
    for solver, penalty in (("pcd", "ti"), ("pbcd", "cs"), ("cd", "l2")):
        rows = [
            r
            for r in measured["versus"]["result"]["rows"]
            if (r["solver"], r["regularizer"]) == (solver, penalty)
        ]
        dense = [r["speedup"] for r in rows if r["data"].startswith("dense")]
        assert f"{min(dense):.2g} to {max(dense):.2g} times" in text
        one_hot += [f"{r['speedup']:.2g}" for r in rows if r["data"].startswith("one-hot")]
    assert "on one-hot data {}, {} and {} times".format(*one_hot) in text


def test_files_of_the_architecture_exist():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    files = re.findall(r"`(\w+/[\w/]*\w\.py)`", text)
    assert len(files) > 20
    assert not [file for file in files if not any((root / file).is_file() for root in (ROOT, ROOT / "fmviz"))]


def test_the_version_is_declared_once():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"].get("version") is None
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "fmviz.__version__"}
    changes, citation = ((ROOT / name).read_text("utf-8") for name in ("CHANGELOG.md", "CITATION.cff"))
    assert re.search(r"(?m)^## \[(.*)\]", changes)[1] == fmviz.__version__
    assert f"\nversion: {fmviz.__version__}\n" in citation
    for page in ("index", "guide/install"):
        assert f"fmviz-{fmviz.__version__}-py3-none-any.whl" in (ROOT / f"docs/{page}.md").read_text("utf-8")
    # Its papers are those of the page About.
    titles = [re.search(r"(?s)\n  title +?= \{(.*?)\}", bibtex)[1] for _, bibtex in PAPERS]
    assert all(" ".join(title.split()) in citation for title in titles)


def test_every_public_name_is_in_the_reference():
    reference = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")
    named = re.findall(r"^\.\. (?:auto|py:)\w+:: (?:fmviz\.)?(\w+)$", reference, re.MULTILINE)
    assert set(named) - {"fmviz"} == set(fmviz.__all__)


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_CODE, ids=place)
def test_the_examples_run(page, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    # The examples of a page follow each other.
    (tmp_path / "sample_data").symlink_to(ROOT / "sample_data")
    script = tmp_path / "examples.py"
    script.write_text("\n".join(["import fmviz", *blocks]), encoding="utf-8")
    run_afresh(script, folder=tmp_path, PATH="")
