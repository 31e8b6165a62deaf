"""Plant faults one at a time and check that the tests detect them.

    .venv/bin/python tools/mutants.py              every fault, with the tests of its folder
    .venv/bin/python tools/mutants.py 3 17         only these two
    .venv/bin/python tools/mutants.py --full       survivors also with all tests of `make test`
    .venv/bin/python tools/mutants.py --all        survivors also with all tests of `make test-all`

Nothing is written to the checkout: every process of a test run loads the faulty module through an import
hook. Faults inside kernels use a separate kernel cache; all others share the warm one.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# The timeout of tests in seconds: a fault may cause an endless loop.
_LONGEST = 3600.0

_HOOK = """
import json, os, sys
from importlib import machinery

_FAULT = json.loads(os.environ["FMVIZ_FAULT"])


class Loader(machinery.SourceFileLoader):
    def get_code(self, name):
        if os.path.realpath(self.path) != _FAULT["path"]:
            return super().get_code(name)
        source = self.get_data(self.path).decode()
        assert source.count(_FAULT["before"]) == 1, "the fault no longer fits its file"
        return compile(source.replace(_FAULT["before"], _FAULT["after"]), self.path, "exec")


details = (
    (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
    (Loader, machinery.SOURCE_SUFFIXES),
    (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
)
sys.path_hooks.insert(0, machinery.FileFinder.path_hook(*details))
sys.path_importer_cache.clear()
"""


@dataclass(frozen=True)
class Fault:
    """An edit that changes the behaviour of the code.

    Attributes
    ----------
    where : str
        The file, relative to `fmviz`.
    before, after : str
        The original text, which occurs once, and its replacement.
    tests : str
        The tests of its folder, relative to `tests`.
    kernel : bool
        Whether it is in compiled code.
    """

    where: str
    before: str
    after: str
    tests: str
    kernel: bool = False


def faults() -> list[Fault]:
    """Return the faults listed in `mutants.toml` next to this file."""
    import tomllib

    with open(Path(__file__).with_suffix(".toml"), "rb") as file:
        return [Fault(**entry) for entry in tomllib.load(file)["fault"]]


def finished(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str] | None:
    """Run a command in a separate session; return its result, None after a timeout."""
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, errors = process.communicate(timeout=_LONGEST)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None
    return subprocess.CompletedProcess(command, process.returncode, out, errors)


def killed(fault: Fault, arguments: list[str], hook: str, cache: str) -> bool:
    """Return whether the tests fail, or hang, with the fault in place."""
    path = (ROOT / "fmviz" / fault.where).resolve()
    if path.read_text(encoding="utf-8").count(fault.before) != 1:
        # Reported here: tests that read the file would fail, and the fault would count as detected.
        sys.exit(f"{fault.where} does not contain exactly once: {fault.before}")
    edit = json.dumps({"path": str(path), "before": fault.before, "after": fault.after})
    environment = os.environ | {"FMVIZ_FAULT": edit, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    # This checkout, including for processes started elsewhere: another one may be installed.
    places = [hook, str(ROOT), os.environ.get("PYTHONPATH")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, places))
    if fault.kernel:
        environment["FMVIZ_CACHE_DIR"] = cache
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "2", "--dist", "loadgroup", *arguments]
    run = finished(command, environment)
    if run is None:
        return True
    # A test module that cannot be imported has also detected the fault; -x is reported as an interruption.
    told_by = (" during collection", "stopping after 1 failures")
    interrupted = run.returncode == 2 and any(words in run.stdout for words in told_by)
    if run.returncode not in (0, 1) and not interrupted:
        sys.exit(f"pytest could not run: {run.stdout[-2000:]}{run.stderr[-2000:]}")
    return run.returncode != 0


def main() -> int:
    """Plant the selected faults; return the number of survivors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("numbers", type=int, nargs="*", help="the numbers of the faults (default: all)")
    parser.add_argument("--full", action="store_true", help="run survivors with all tests of `make test`")
    parser.add_argument("--all", action="store_true", help="and all tests of `make test-all`")
    given = parser.parse_args()
    listed = faults()
    survivors = 0
    for number in given.numbers or range(1, len(listed) + 1):
        fault, begin = listed[number - 1], time.monotonic()
        rounds = [["-m", "not slow and not browser", *(f"tests/{part}" for part in fault.tests.split())]]
        rounds += [["-m", "not slow"]] if given.full or given.all else []
        rounds += [["tests"]] if given.all else []
        with tempfile.TemporaryDirectory(prefix="fmviz-fault-") as scratch:
            Path(scratch, "sitecustomize.py").write_text(_HOOK, encoding="utf-8")
            end = next((i for i, tests in enumerate(rounds) if killed(fault, tests, scratch, scratch)), None)
        by = "nobody" if end is None else ("its folder", "make test", "make test-all")[end]
        survivors += end is None
        first = fault.before.strip().splitlines()[0]
        print(
            f"{number:3} {fault.where}: {first} · killed by {by}, {time.monotonic() - begin:.0f} s",
            flush=True,
        )
    print(f"{survivors} of {len(given.numbers) or len(listed)} survive")
    return survivors


if __name__ == "__main__":
    sys.exit(min(main(), 100))
