"""Make `data`: what commit bcea1f3 leaves behind, against which the present code is held.

It is run by the code of that commit, with this folder's modules beside it, for instance::

    git worktree add ../bcea1f3 bcea1f3
    cd ../bcea1f3
    PYTHONPATH=.:../fmviz/tests python ../fmviz/tests/compatibility/make_data.py

Clocks, ids and the name of the computer are made up, so that a second call makes the same numbers. Whatever
is kept was made again five times from starts that differ by one unit in the last place, and came out the same
to a tenth of what the tests allow: a difference is not one of rounding.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import inspect
import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

DATA = Path(__file__).resolve().parent / "data"
STORE = DATA / "store.db"
# Before anything asks where the store is. Files of one's own lie beside it.
os.environ["FMVIZ_STORE"] = str(STORE)
# One fit at a time, in this process, whose clocks are made up.
os.environ["LOKY_MAX_CPU_COUNT"] = "1"

from compatibility import calls, cases, make_programs  # noqa: E402
from compatibility.chance import ARRAYS, WOBBLES, made_up, settled, wobbled  # noqa: E402
from compatibility.comparing import PRINTED, RUN  # noqa: E402
from fmviz.lab.own import shelf  # noqa: E402
from fmviz.lab.own.files import Reading  # noqa: E402
from fmviz.lab.own.recipe import first_recipe  # noqa: E402
from fmviz.lab.provenance import data_hash  # noqa: E402
from fmviz.lab.sweep_plan import SweepPlan  # noqa: E402
from fmviz.lab.table_run import SavedModel  # noqa: E402

import fmviz  # noqa: E402
from fmviz.__main__ import main as command  # noqa: E402
from fmviz.lab import recorder, sweep_run  # noqa: E402
from fmviz.lab.experiment import _BY_NAME, OWNERS, Experiment  # noqa: E402
from fmviz.lab.papers import ARTEFACTS  # noqa: E402
from fmviz.lab.runner import Run  # noqa: E402
from fmviz.lab.store import RunStore  # noqa: E402
from fmviz.lab.store.archive import export_runs  # noqa: E402
from fmviz.lab.store.results import keep_result  # noqa: E402

PREDICTED = 20


def write(name: str, told: Any, digits: int = 12) -> None:
    """Write something as JSON into the folder, a line for each of its parts."""

    def text(value: Any) -> str:
        return json.dumps(rounded(value, digits), ensure_ascii=False)

    if isinstance(told, dict):
        lines, ends = (
            [f"{json.dumps(key, ensure_ascii=False)}: {text(one)}" for key, one in told.items()],
            "{}",
        )
    else:
        lines, ends = [text(one) for one in told], "[]"
    whole = ",\n".join(lines)
    (DATA / name).write_text(f"{ends[0]}\n{whole}\n{ends[1]}\n", encoding="utf-8")


def rounded(value: Any, digits: int) -> Any:
    """Return plain data with so many digits of every number, more than the tests look at."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, dict):
        return {name: rounded(one, digits) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one, digits) for one in value]
    return value


# ------------------------------------------------------------------------------------------------------ runs


def experiments(own: str) -> dict[str, Experiment]:
    """Return the runs that end, by their ids."""
    found = {name: Experiment(**settings) for name, settings in cases.RUNS.items()}
    return found | {"own": Experiment(dataset=own, **cases.OWN)}


def told(run: Run, snapshots: list[Any]) -> dict[str, Any]:
    """Return the figures of a run as JSON takes them, but for the times."""
    # One that diverges tells its last finite epoch twice.
    records = list({one.epoch: one.record() for one in snapshots}.values())
    figures = ("objective", "used_features", "used_interactions", "certificate")
    status = snapshots[-1].status
    return {
        "settings": run.experiment.to_dict(defaults=False),
        "status": str(status.reason),
        "epoch": snapshots[-1].epoch,
        "data_hash": data_hash(run.dataset),
        "last": {name: value for name, value in records[-1].items() if name != "seconds"},
        "trace": {name: [one[name] for one in records] for name in figures},
    }


def arrays(run: Run, snapshots: list[Any]) -> dict[str, np.ndarray]:
    """Return the parameters at the end of a run, and what they predict for the first rows."""
    found = snapshots[-1].parameters
    kept = {name: value for name in ARRAYS if (value := getattr(found, name)) is not None}
    design = run.problem.design
    predicted = run.problem.model.predict(design, found)[:PREDICTED]
    return kept | {"intercept": np.array(found.intercept), "predict": predicted}


def recorded(name: str, experiment: Experiment, store: RunStore, cut: int | None = None) -> list[Any]:
    """Make a run and write it to the store, as pages and commands do; return its snapshots.

    With `cut` the process is killed two epochs after a checkpoint at that epoch.
    """
    writer = recorder.Recorder(lambda: store, experiment, origin="command")
    writer.run = name
    found = []
    try:
        run = Run.prepare(experiment)
        writer.prepared(run.dataset)
        for snapshot in run.snapshots(keep=writer.keep):
            writer.add(snapshot)
            found.append(snapshot)
            if cut is not None:
                recorder.CHECKPOINT_SECONDS = -1.0 if snapshot.epoch + 1 == cut else float("inf")
                recorder.FLUSH_SECONDS = -1.0 if snapshot.epoch + 1 >= cut else float("inf")
                if snapshot.epoch == cut + 2:
                    os.kill(os.getpid(), signal.SIGKILL)
        writer.end(found[-1].status.reason, found[-1].status.message)
    except ValueError as error:
        writer.end("failed", str(error))
    assert not writer.trouble, writer.trouble
    return found


def make_runs() -> None:
    """Make the store: runs that ended and that were cut off, a sweep, a figure of a paper, own data."""
    figures: dict[str, Any] = {}
    numbers: dict[str, np.ndarray] = {}
    with made_up():
        own = bring_own()
        store = RunStore(STORE)
        for name, experiment in experiments(own).items():
            keep(name, recorded(name, experiment, store), experiment, figures, numbers)
        store.rename("ti", "Planted pairs, changed on the way")
        plan = SweepPlan.from_dict(cases.SWEEP)
        fits = {one.index: one.run for one in sweep_run.carry_out(plan, store, n_jobs=1, sweep="ti-cs")}
        *_, result = ARTEFACTS[cases.PAPER].run("quick", n_jobs=1)
        keep_result(store, dataclasses.replace(result, seconds=2.0).to_dict())
        store.close()
    for place, (name, (epoch, settings)) in enumerate(cases.CUT.items()):
        given = [sys.executable, __file__, "--cut", name, "--begin", str(1_735_740_000 + 1_000 * place)]
        assert subprocess.run(given).returncode == -signal.SIGKILL
        experiment = Experiment(**settings)
        keep(name, list(Run.prepare(experiment).snapshots()), experiment, figures, numbers)
        figures[name]["cut"] = epoch
    with contextlib.closing(sqlite3.connect(STORE)) as connection:
        # What the killed ones left in the log goes into the file, the only one that is kept; in small pages,
        # since most rows are short.
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA page_size = 1024")
        connection.execute("VACUUM")
    write("runs.json", figures)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **numbers)
    (DATA / "numbers.npz").write_bytes(buffer.getvalue())
    shown = {one.id: [one.last["objective"], one.last["used_interactions"]] for one in fits.values()}
    write("sweep.json", {"plan": plan.to_dict(), "fits": shown})
    checks = [[one.statement, one.verdict, one.measured] for one in result.checks]
    sums = {name: sums_of(rows) for name, rows in result.tables.items()}
    write("paper.json", {"artefact": cases.PAPER, "checks": checks, "sums": sums})
    with made_up():
        store = RunStore(STORE)
        (DATA / "runs.zip").write_bytes(export_runs(store, ["ti", "cut-pcd"]))
        store.close()


def sums_of(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return how many rows a table has, and the sums of its columns of numbers."""
    table = pd.DataFrame(rows).select_dtypes("number")
    return {"rows": len(rows), **{str(name): float(table[name].sum()) for name in table}}


def keep(
    name: str, snapshots: list[Any], experiment: Experiment, figures: dict[str, Any], numbers: dict[str, Any]
) -> None:
    """Keep the numbers of a run, once it has come out the same from starts nearby."""
    if not snapshots:
        figures[name] = {"settings": experiment.to_dict(defaults=False), "status": "failed"}
        return
    run = Run.prepare(experiment)
    figures[name] = told(run, snapshots)
    found = arrays(run, snapshots)
    numbers |= {f"{name}/{part}": value for part, value in found.items()}
    plain = {part: value.tolist() for part, value in found.items()}
    for seed in range(WOBBLES):
        with wobbled(seed):
            again = list(run.snapshots())
        settled(name, figures[name], told(run, again), RUN)
        flat = {part: value.tolist() for part, value in arrays(run, again).items()}
        settled(name, plain, flat, RUN)


def cut_off(name: str, begin: float) -> None:
    """Begin one of the runs that are killed; never returns."""
    epoch, settings = cases.CUT[name]
    recorder.FLUSH_SECONDS = recorder.CHECKPOINT_SECONDS = float("inf")
    with made_up(begin):
        recorded(name, Experiment(**settings), RunStore(STORE), epoch)
    raise SystemExit(f"{name} ended before it could be killed.")


def bring_own() -> str:
    """Enter a file of one's own as a data set; return its name."""
    file = shelf.keep_file(cases.TABLE.encode())
    found = shelf.profile(file, Reading())
    first = first_recipe(found.source, found.columns)
    columns = tuple(
        dataclasses.replace(one, kind="ignored") if one.name == "note" else one for one in first.columns
    )
    recipe = dataclasses.replace(first, columns=columns, target="y", task="regression", rare=2)
    return shelf.enter(file, recipe, "people.csv").name


# ------------------------------------------------------------------------------------------- settings, links


def other(spec: Any) -> Any:
    """Return a value that a setting does not have by itself."""
    if spec.kind == "bool":
        return not spec.default
    if spec.kind == "choice":
        return next(one for one in reversed(spec.choices) if one != spec.default)
    step = 1 if spec.kind == "int" else (abs(spec.default) / 4 or 0.01)
    for value in (spec.default + step, spec.default - step):
        with contextlib.suppress(ValueError):
            return spec.check(value)
    raise AssertionError(spec)


def every_owner() -> Iterator[Experiment]:
    """Yield an experiment for everything that has parameters of its own, all of them changed."""
    for owner, specs_of in OWNERS.items():
        for choice in _BY_NAME[owner].choices:
            own = tuple((spec.name, other(spec)) for spec in specs_of(choice))
            yield Experiment(**{owner: choice, f"{owner}_params": own})
    plain = {name: other(spec) for name, spec in _BY_NAME.items() if name not in OWNERS}
    yield Experiment(**plain, changes=((3, "lambda_p", 0.5), (7, "lambda_sparse", 0.0)))


def make_settings() -> None:
    """Make links and JSON of experiments, and plans of sweeps, with what they say."""
    right = [*(Experiment(**one) for one in cases.RUNS.values()), *every_owner()]
    found: list[tuple[Any, Experiment, list[str]]] = [(one.to_query(), one, []) for one in right]
    found += [(query, *Experiment.from_query(query)) for query in cases.WRONG_LINKS]
    links = [
        {"query": query, "settings": one.to_dict(defaults=False), "notices": len(notices)}
        for query, one, notices in found
    ]
    texts = [one.to_json() for _, one, _ in found[:: len(found) // 5]]
    write(
        "experiments.json", [Experiment().to_dict(), *links, *({"json": text} for text in texts)], digits=17
    )
    plan = SweepPlan.from_text(cases.PLAN)
    cells = [cell.to_dict(defaults=False) for cell in plan.cells]
    texts = {"by hand": cases.PLAN, "toml": plan.to_toml(), "json": plan.to_json()}
    write("plans.json", {"texts": texts, "cells": cells}, digits=17)


# ---------------------------------------------------------------------------------------------- names, files


def make_names() -> None:
    """Make the list of public names with their parameters, and what the calls of `calls` return."""
    signatures: dict[str, Any] = {}
    for name in fmviz.__all__:
        one = getattr(fmviz, name)
        if inspect.ismodule(one):
            signatures |= {f"{name}.{part}": parameters(getattr(one, part)) for part in one.__all__}
        else:
            signatures[name] = parameters(one)
            if inspect.isclass(one):
                signatures |= {f"{name}.{part}": parameters(method) for part, method in own_methods(one)}
    write("names.json", {"all": sorted(fmviz.__all__), "signatures": signatures})
    found = {name: call() for name, call in calls.CALLS.items()}
    for seed in range(WOBBLES):
        with wobbled(seed):
            again = {name: call() for name, call in calls.CALLS.items()}
        settled("calls", found, again, PRINTED)
    write("calls.json", found, digits=8)


def own_methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods that fmviz has written, not those of scikit-learn."""
    for name, one in inspect.getmembers(kind, callable):
        if not name.startswith("_") and getattr(one, "__module__", "").startswith("fmviz"):
            yield name, one


def parameters(function: Any) -> str:
    """Return the signature of a function, without types and without defaults that are functions."""
    found = inspect.signature(function)
    kept = [
        one.replace(annotation=one.empty, default=one.empty if callable(one.default) else one.default)
        for one in found.parameters.values()
        if one.name != "self"
    ]
    return str(found.replace(parameters=kept, return_annotation=found.empty))


def make_fits() -> None:
    """Make the folder that ``fmviz fit --output`` writes, for a number and for two classes."""
    predictions = {}
    table = DATA / "people.csv"
    table.write_text(cases.TABLE, encoding="utf-8")
    given = ["fit", table.name, "--ignore", "note", "--ignore", "since", "--missing", "impute", "--top", "10"]
    given += ["--rank", "3", "--max-epochs", "9", "--lambda-p", "1e-5", "--lambda-sparse", "1e-5"]
    for target in ("y", "smoker"):
        folder = DATA / f"fit-{target}"
        own = ["--target", target, "--output", folder.name]
        with made_up(), contextlib.redirect_stdout(io.StringIO()), contextlib.chdir(DATA):
            assert command([*given, *own]) == 0
        # For people: nothing reads them, and one is of some megabytes.
        (folder / "report.html").unlink()
        (folder / "report.json").unlink()
        model = SavedModel.load(folder / "model.npz")
        predictions[target] = model.predict(pd.read_csv(table)).tolist()
    # It lies beside the store already, as own data.
    table.unlink()
    write("predictions.json", predictions)


def make_copied() -> None:
    """Make the programs and the links to pages."""
    (entry,) = (DATA / "store-data").glob("own_*.json")
    (kept,) = (DATA / "store-data").glob("file_*")
    file = kept.name.removeprefix("file_")
    ends = {
        name: one["last"]
        for name, one in json.loads((DATA / "runs.json").read_text()).items()
        if "last" in one
    }
    write("programs.json", make_programs.programs(entry.stem))
    write("pages.json", make_programs.links(DATA, entry.stem, file, ends))


def main() -> None:
    """Make everything anew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cut", help=argparse.SUPPRESS)
    parser.add_argument("--begin", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.cut:
        cut_off(arguments.cut, arguments.begin)
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir()
    begin = time.perf_counter()
    for make in (make_runs, make_settings, make_names, make_fits, make_copied):
        make()
        print(f"{make.__name__}: {time.perf_counter() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
