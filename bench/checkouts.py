"""Check out an older commit of fmviz and run it beside this one, each in its own process."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .adapter import Case, receive, send
from .peers import ONE_THREAD, ROOT

BEFORE = "2c2cf81"
ADAPTER = Path(__file__).with_name("adapter.py")


class FailedError(Exception):
    """What a checkout raised, in its own words."""


class Checkout:
    """A checkout at work in its own process; use it as a context manager.

    Parameters
    ----------
    root : Path
        The checkout.
    """

    def __init__(self, root: Path) -> None:
        # -P: nothing but the checkout is found by its place.
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(ADAPTER), str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=root,
            env=os.environ | ONE_THREAD,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout

    def __enter__(self) -> Checkout:
        return self

    def __exit__(self, *_: object) -> None:
        self._to.close()
        self._process.wait()
        self._from.close()

    def begin(self, what: str, *arguments: Any) -> None:
        """Ask for something, a method of `bench.adapter.Worker`, without waiting for it."""
        send(self._to, (what, arguments))

    def end(self) -> Any:
        """Return the answer to what was asked.

        Raises
        ------
        FailedError
            If the checkout raised something.
        EOFError
            If its process has ended.
        """
        reply = receive(self._from)
        if "error" in reply:
            raise FailedError(reply["error"])
        return reply["answer"]

    def ask(self, what: str, *arguments: Any) -> Any:
        """Ask, and wait for the answer."""
        self.begin(what, *arguments)
        return self.end()


@contextmanager
def work_tree(commit: str) -> Iterator[Path]:
    """Check a commit out into a temporary directory."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place, "checkout")
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", str(root), commit], check=True, capture_output=True)
        try:
            yield root
        finally:
            subprocess.run([*git, "remove", "--force", str(root)], check=True, capture_output=True)


@contextmanager
def chosen(arguments: argparse.Namespace) -> Iterator[tuple[Path, Path]]:
    """Yield the roots of the old and of the present checkout."""
    if arguments.old is not None:
        yield arguments.old.resolve(), ROOT
        return
    with work_tree(arguments.against) as old:
        yield old, ROOT


def parser(prog: str, description: str) -> argparse.ArgumentParser:
    """Return a command line that names the old checkout."""
    options = argparse.ArgumentParser(
        prog=prog, description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    options.add_argument(
        "--against", default=BEFORE, metavar="COMMIT", help=f"the old commit (default {BEFORE})"
    )
    options.add_argument("--old", type=Path, metavar="PATH", help="a checkout of it; without, one is made")
    options.add_argument("--quick", action="store_true", help="few cases: some minutes")
    options.add_argument(
        "--every", type=int, default=1, metavar="K", help="every K-th case alone: a sample of all of them"
    )
    return options


def together(checkouts: tuple[Checkout, ...], what: str, *arguments: Any) -> list[Any]:
    """Ask all of them at once; return their answers.

    Raises
    ------
    FailedError
        If one of them raised something; the others are then ready for the next question, too.
    """
    for checkout in checkouts:
        checkout.begin(what, *arguments)
    answers, errors = [], []
    for checkout in checkouts:
        try:
            answers.append(checkout.end())
        except FailedError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return answers


def fitting(old: Checkout, new: Checkout, cases: list[Case]) -> tuple[list[Case], list[str]]:
    """Return the cases that both can run, and sentences on those that the new one cannot any more."""
    both, lost = [], []
    for case, before, now in zip(cases, *together((old, new), "fits", cases), strict=True):
        if before and now:
            both.append(case)
        elif before:
            lost.append(f"{case['name']}: the new checkout cannot run it.")
    return both, lost


def lasted(begin: float) -> str:
    """Return how long it took since `begin`, and how much of a processor the ended processes used."""
    ended = os.times()
    return (
        f"{time.perf_counter() - begin:.0f} s; {ended.children_user + ended.children_system:.0f} processor "
        "seconds of the checkouts."
    )
