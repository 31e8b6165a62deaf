"""The programs that pages and commands of commit bcea1f3 offer to copy, and the links to its pages."""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from compatibility import cases, pages
from compatibility.chance import WOBBLES, wobbled
from compatibility.comparing import same_printed
from fmviz.lab.duel import search_program
from fmviz.lab.jobs import InlineExecutor, JobManager
from fmviz.lab.program import duel_program, paper_program, program, sweep_program
from fmviz.lab.strength_path import PathPlan, path_program
from fmviz.lab.sweep_plan import SweepPlan

from fmviz.lab import geometry, jobs, operators
from fmviz.lab.experiment import Experiment
from fmviz.lab.store import runs

Files = Mapping[str, str]


def printed(code: str, files: Files) -> str:
    """Return what a program prints in a folder of its own, with these files and no runs in it."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**files, "copied.py": code}.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        elsewhere = mock.patch.dict(os.environ, FMVIZ_STORE=str(Path(folder, "elsewhere.db")))
        said = io.StringIO()
        with elsewhere, contextlib.chdir(folder), contextlib.redirect_stdout(said):
            runpy.run_path("copied.py", run_name="__main__")
    return said.getvalue()


def every_program(own: str) -> Iterator[tuple[str, str, Files]]:
    """Yield the programs with their names and the files that they read; `own` is the name of own data."""
    ended = {name: Experiment(**settings) for name, settings in cases.RUNS.items()}
    for name in ("ti", "cs", "huber", "hofm", "lifted", "quadratic", "convex"):
        yield f"run {name}", program(ended[name]), {}
    yield "run halted", program(ended["expansion"], 6), {}
    of_own = Experiment(dataset=own, **cases.OWN)
    yield "run of one's own data", program(of_own), {"people.csv": cases.TABLE}
    yield "sweep", sweep_program(SweepPlan.from_dict(cases.SWEEP)), {}
    base = Experiment(**cases.SEARCHED)
    yield "duel", duel_program(base, ["ti", "cs"], 10), {}
    yield "search", search_program(base, 10, (6, 15), grid=(1e-4, 1e-3, 1e-2, 1e-1), narrowest=1e-6), {}
    for order in ("up", "cold"):
        plan = PathPlan(base, ("l1", "ti", "cs"), (0.001, 0.01, 0.1), order)  # type: ignore[arg-type]
        yield f"path {order}", path_program(plan), {}
    yield "paper", paper_program(cases.PAPER, "quick"), {}
    chosen = [operators.VARIANTS[name] for name in ("l1", "ti", "ti_rows", "cs", "ti_power")]
    powers = [operators.with_degree(one, 4) for one in chosen]
    drawn: dict[str, Any] = {"d": 30, "k": 5, "distribution": "blocks", "seed": 3}
    yield "operators", operators.python_source(powers, -2, **drawn), {}
    small = operators.sample(4, 2, "normal", 1)
    yield "operators of a matrix", operators.python_source(chosen, 0, P=small), {}
    large = operators.sample(60, 12, "rows", 2).round(2)
    text = "\n".join(",".join(map(repr, row)) for row in large.tolist())
    yield "operators of a file", operators.python_source(chosen, -3, P=large), {"P.csv": text}
    section = geometry.SOLIDS["corner"]
    yield "geometry", geometry.geometry_program(section, geometry.NAMES, [1.5, 0.6, -0.4], 0.4), {}


def programs(own: str) -> dict[str, Any]:
    """Return the programs with what they print."""
    found = {}
    for name, code, files in every_program(own):
        said = printed(code, files)
        for seed in range(WOBBLES):
            with wobbled(seed):
                if (wrong := same_printed(printed(code, files), said)) is not None:
                    raise SystemExit(f"The program {name!r} rests on rounding: {wrong}")
        found[name] = {"code": code.splitlines(), "files": files, "printed": said.splitlines()}
    return found


def links(data: Path, own: str, file: str, ends: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return links to pages, with what the address bar says then, and what the pages' programs print.

    Parameters
    ----------
    data : path
        Where ``store.db`` lies.
    own, file : str
        The names of the own data and of their file.
    ends : mapping
        The last records of the runs, by their ids.
    """
    found = []
    for page, given, names in cases.PAGES:
        query = {key: {"OWN": own, "FILE": file}.get(text, text) for key, text in given.items()}
        figures = ("objective", "used_features", "used_interactions")
        shows = [
            one if isinstance(one, float) else float(ends[one][figure])
            for one in names
            for figure in (figures if isinstance(one, str) else figures[:1])
        ]
        with tempfile.TemporaryDirectory() as folder, served(data, Path(folder)):
            app = pages.opened(page, query)
            there = pages.address(app)
            said = [text for text in pages.texts(app) if "From the link" in text or "The link" in text]
            codes = pages.programs(app)
        if said or (lacking := pages.lacks(app, shows)):
            raise SystemExit(f"The page {page!r} with {query} says {said}, or does not show {lacking}.")
        entry: dict[str, Any] = {"page": page, "query": query, "shows": shows}
        # A run that begins on the page has an id that nobody knows before.
        entry["address"] = {name: text for name, text in there.items() if name != "run" or "run" in query}
        entry["printed"] = [printed(code, {}).splitlines() for code in codes] if page in _QUICK else []
        found.append(entry)
    return found


_QUICK = ("prox", "geometry", "train", "path")
"""The pages whose programs take no time and need nothing but fmviz."""


@contextlib.contextmanager
def served(data: Path, folder: Path) -> Iterator[None]:
    """Let pages use a copy of the store, and make runs at once."""
    shutil.copy(data / "store.db", folder)
    shutil.copytree(data / "store-data", folder / "store-data")
    with mock.patch.dict(os.environ, FMVIZ_STORE=str(folder / "store.db")):
        store = runs.store()
        before = jobs.install(JobManager(InlineExecutor(), open_store=lambda: store))
        try:
            yield
        finally:
            jobs.install(before)
            store.close()
