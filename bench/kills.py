"""Kill servers, sweeps and imports without warning, and check what the run store has lost.

    python -m bench.kills          # a hundred
    python -m bench.kills 20 7     # twenty, by another seed

A dashboard that trains, a sweep, a reproduction and an import work on one store, one after the other by
chance, and each is killed by SIGKILL at a random moment, its children not. After every kill the store must be
whole, hold everything that had been finished before as it was, and an import must have brought all of its
runs or none; after five seconds no process may be left. Prints every failure, and counts at the end. Linux
only.
"""

from __future__ import annotations

import asyncio
import io
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fmviz.lab.background.pool import InlineExecutor
from fmviz.lab.background.tasks import TaskManager
from fmviz.lab.experiment import Experiment
from fmviz.lab.store import RunStore, new_id
from fmviz.lab.store.archive import export_runs

from .peers import ROOT
from .serve import served, server_of
from .sessions import Session

PATIENCE = 5.0
_LONGEST = 60.0
_MARK = "FMVIZ_BENCH_KILL"
_SWEEP = """
title = "To be killed"
seeds = 500
[base]
rank = 10
max_epochs = 60
tol = 0.0
[[method]]
regularizer = "ti"
[[method]]
regularizer = "cs"
"""


class Place:
    """A folder with a store, a sweep to carry out and an archive to import.

    Parameters
    ----------
    folder : Path
        An empty one.
    """

    def __init__(self, folder: Path) -> None:
        self.store = folder / "runs.sqlite"
        self.sweep = folder / "sweep.toml"
        self.sweep.write_text(_SWEEP)
        small = RunStore(folder / "small.sqlite")
        manager = TaskManager(InlineExecutor(), open_store=lambda: small)
        self._ids = [
            manager.start(Experiment(max_epochs=100, tol=0.0, seed=seed), str(seed)).id for seed in range(8)
        ]
        self._archive = export_runs(small, self._ids)
        small.close()
        self._folder = folder

    def archive(self) -> tuple[Path, set[str]]:
        """Write an archive of runs that nobody has; return it and their ids."""
        names = {old: new_id() for old in self._ids}
        path = self._folder / "runs.zip"
        with zipfile.ZipFile(io.BytesIO(self._archive)) as old, zipfile.ZipFile(path, "w") as new:
            for entry in old.namelist():
                run, dot, ending = entry.rpartition(".")
                data = old.read(entry)
                if run in names:
                    data = data.replace(run.encode(), names[run].encode())
                new.writestr(f"{names.get(run, run)}{dot}{ending}", data)
        return path, set(names.values())

    def finished(self) -> dict[str, tuple[str, int, int, bytes]]:
        """Return, of every run that has ended, its status, its last epoch, its records and its factors."""
        if not self.store.exists():
            return {}
        store = RunStore(self.store)
        try:
            results = {}
            for run in store.runs(limit=100_000):
                if run.ended and not run.resumable:
                    parameters = store.parameters(run.id)
                    P = b"" if parameters is None else parameters.P.tobytes()
                    results[run.id] = (run.status, run.epoch, len(store.trace(run.id)), P)
            return results
        finally:
            store.close()

    def is_complete(self) -> bool:
        """Return whether SQLite finds nothing wrong."""
        store = RunStore(self.store)
        try:
            return bool(store.database.read("PRAGMA integrity_check")[0][0] == "ok")
        finally:
            store.close()


def marked(mark: str) -> list[int]:
    """Return the processes that were started with a mark in their environment, and live."""
    problems = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                given = (folder / "environ").read_bytes().split(b"\0")
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if f"{_MARK}={mark}".encode() in given and state != "Z":
                problems.append(int(folder.name))
    return problems


def kill_command(arguments: list[str], environment: dict[str, str], seconds: float) -> bool:
    """Kill a command of fmviz after a while; return whether it was still at work."""
    process = subprocess.Popen(
        [sys.executable, "-m", "fmviz", *arguments],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return True
    return False


def kill_server(environment: dict[str, str], seconds: float) -> bool:
    """Kill a dashboard that trains."""

    async def train(url: str) -> None:
        session = Session(url)
        # Before the page is drawn, if that takes long.
        with suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST):
                await session.open()
                await session.click("train_play")
        await asyncio.sleep(seconds)
        os.kill(server_of(url.rpartition(":")[2]), signal.SIGKILL)
        await session.close()

    with served(environment) as url:
        asyncio.run(train(url))
    return True


def once(place: Place, chance: random.Random) -> tuple[str, list[str]]:
    """Kill one of them; return which, and what was wrong afterwards."""
    mark = uuid.uuid4().hex
    environment = {**os.environ, _MARK: mark, "FMVIZ_STORE": str(place.store)}
    archive, brought = place.archive()
    kinds: dict[str, Callable[[], bool]] = {
        "server": lambda: kill_server(environment, chance.uniform(0.0, 3.0)),
        "sweep": lambda: kill_command(["sweep", str(place.sweep)], environment, chance.uniform(2.0, 14.0)),
        "reproduction": lambda: kill_command(["paper", "fig3"], environment, chance.uniform(2.0, 14.0)),
        "import": lambda: kill_command(
            ["runs", "import", str(archive)], environment, chance.uniform(1.0, 7.0)
        ),
    }
    kind = chance.choice(list(kinds))
    before = place.finished()
    at_work = kinds[kind]()
    wrong = []
    deadline = time.monotonic() + PATIENCE
    while (survivors := marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    if survivors:
        wrong.append(f"{len(survivors)} processes left")
        for pid in survivors:
            os.kill(pid, signal.SIGKILL)
    if place.store.exists():
        if not place.is_complete():
            wrong.append("the store is broken")
        after = place.finished()
        wrong += [f"run {run} lost or changed" for run, record in before.items() if after.get(run) != record]
        if len(brought & after.keys()) not in (0, len(brought)):
            wrong.append("half an import")
    return kind if at_work else f"{kind} that had ended", wrong


def main() -> None:
    """Kill, count and print."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    chance = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    killed: Counter[str] = Counter()
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        for i in range(n):
            kind, wrong = once(place, chance)
            killed[kind] += 1
            failures += bool(wrong)
            for sentence in wrong:
                print(f"kill {i}, {kind}: {sentence}", flush=True)
            if i % 10 == 9:
                print(f"{i + 1} kills, {failures} with failures; {dict(killed)}", flush=True)
        print(f"{n} kills, {failures} with failures, {len(place.finished())} runs kept; {dict(killed)}")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
