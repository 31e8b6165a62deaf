"""Programs that were copied at commit bcea1f3 print the same numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from compatibility.comparing import same_printed

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS: dict[str, Any] = json.loads(
    (Path(__file__).parent / "data" / "programs.json").read_text(encoding="utf-8")
)

# Each program runs as if it were the only one, but for what was imported and compiled before it.
_LOOP = """
import contextlib, io, json, os, runpy, sys, traceback
for line in sys.stdin:
    os.chdir(json.loads(line))
    os.environ["FMVIZ_STORE"] = os.path.abspath("elsewhere.db")
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            runpy.run_path("copied.py", run_name="__main__")
    except BaseException:
        said.write(traceback.format_exc())
    print(json.dumps(said.getvalue()), flush=True)
"""


@pytest.fixture(scope="module")
def printed() -> Iterator[Callable[[Path], str]]:
    """Return what the program ``copied.py`` of a folder prints in a process that has nothing of ours."""
    path = os.pathsep.join(x for x in (str(ROOT), os.environ.get("PYTHONPATH", "")) if x)
    # A sweep that takes one core makes its fits in the process itself.
    told = {**os.environ, "PYTHONPATH": path, "LOKY_MAX_CPU_COUNT": "1"}
    command = [sys.executable, "-c", _LOOP]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True, encoding="utf-8", env=told) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def run(folder: Path) -> str:
            process.stdin.write(json.dumps(str(folder)) + "\n")
            process.stdin.flush()
            return str(json.loads(process.stdout.readline()))

        yield run
        process.stdin.close()


@pytest.mark.sample(1)
@pytest.mark.xdist_group("old programs")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_copied_program_prints_the_same_numbers(printed, name, tmp_path):
    kept = PROGRAMS[name]
    for file, text in {**kept["files"], "copied.py": "\n".join(kept["code"])}.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    wrong = same_printed(printed(tmp_path), "\n".join(kept["printed"]))
    assert wrong is None, wrong
