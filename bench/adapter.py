"""Drive one checkout of fmviz in a process of its own, on command of `bench.checkouts`.

    python -P bench/adapter.py ROOT

imports fmviz from ROOT, whichever commit that is, and answers requests. All that depends on the engine's API
is in this file, which therefore imports nothing of `bench`. Data come in .npz files, cases as dictionaries of
names and numbers (`bench.cases`); requests and answers are pickled on standard input and output.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import warnings
from functools import lru_cache
from importlib import import_module
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

Case = dict[str, Any]

# Of the features and samples that a combination is tried out on.
TINY = (6, 12)
# Seconds of a first epoch beyond which what comes with it counts little.
SHORT = 0.3


def send(stream: IO[bytes], message: Any) -> None:
    """Write a message."""
    pickle.dump(message, stream)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read a message; raises EOFError where the other side is gone."""
    return pickle.load(stream)


@lru_cache(maxsize=1)
def load(path: str) -> tuple[Any, np.ndarray]:
    """Return X and y of a file that `bench.cases.save` wrote."""
    with np.load(path) as parts:
        if "dense" in parts:
            return parts["dense"], parts["y"]
        X = sp.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"]))
        return X, parts["y"]


def engine(name: str) -> Any:
    """Return a module of the checkout's engine; which ones there are depends on the checkout."""
    return import_module(f"fmviz.engine.{name}")


def names() -> dict[str, list[str]]:
    """Return the names of the registries."""
    return {
        "losses": list(engine("losses").LOSSES),
        "penalties": list(engine("penalties").PENALTIES),
        "models": list(engine("models").MODELS),
        "solvers": list(engine("solvers").SOLVERS),
    }


def build(X: Any, y: np.ndarray, case: Case) -> Any:
    """Return the problem of a case; raises ValueError where its parts do not fit together."""
    more: dict[str, Any] = {
        "rank": case["rank"],
        "fit_linear": case["fit_linear"],
        "fit_intercept": case["fit_linear"],
        **case["strengths"],
    }
    if case["weighted"]:
        more["sample_weight"] = 0.5 + np.random.default_rng(1).random(y.size)
    return engine("problem").Problem.build(
        engine("design").Design(X, case["dtype"]),
        y,
        loss=engine("losses").get_loss(case["loss"], case["loss_settings"]),
        penalty=engine("penalties").get_penalty(case["penalty"], case["penalty_settings"]),
        model=engine("models").get_model(case["model"], case["model_settings"]),
        **more,
    )


def fits(case: Case) -> bool:
    """Return whether the checkout can run such a case, of whatever size."""
    rng = np.random.default_rng(0)
    try:
        problem = build(rng.normal(size=TINY), np.where(np.arange(TINY[0]) % 2, 1.0, -1.0), case)
    except ValueError:
        return False
    return engine("compatibility").why_not(problem, case["solver"]) is None


def start_solver(problem: Any, case: Case, nudge: int | None = None) -> tuple[Any, dict[str, np.ndarray]]:
    """Return a solver at the case's starting point, and the arrays of that point.

    With `nudge`, a seed, every entry of P or W that is not 0 begins one unit in the last place away, up or
    down.
    """
    method = engine("solvers").get_solver(case["solver"], case["solver_settings"]).on(problem)
    start = problem.start(case["init_scale"], np.random.default_rng(0))
    if nudge is not None:
        sides = np.random.default_rng(nudge)
        for array in (start[matrix] for matrix in ("P", "W") if matrix in start):
            away = np.nextafter(array, sides.choice((-np.inf, np.inf), array.shape))
            # In place: it is the starting point's own.
            array[...] = np.where(array == 0.0, 0.0, away)
    before = {key: array.copy() for key, array in start.items()}
    method.start(start, np.random.default_rng(0))
    return method, before


def make_ready(problem: Any, method: Any) -> None:
    """Compile what a run will call, so that no timed epoch does."""
    engine("warmup").make_ready(problem, method)


def objective(problem: Any, method: Any) -> float:
    """Return the objective where the solver is."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(problem.objective(method.parameters()))


def epochs(method: Any, count: int) -> tuple[float, float]:
    """Make so many epochs; return their processor seconds, by the solver's clock, and the last change."""
    change = 0.0
    begin = method.clock()
    for _ in range(count):
        change = method.epoch()
    return method.clock() - begin, change


class Worker:
    """Answers requests; each method is one."""

    def __init__(self) -> None:
        self._method: Any = None

    def names(self) -> dict[str, list[str]]:
        """See the function."""
        return names()

    def fits(self, cases: list[Case]) -> list[bool]:
        """Return whether each case can be run."""
        return [fits(case) for case in cases]

    def follow(self, case: Case, nudge: int | None = None) -> dict[str, Any]:
        """Run a case; return the parameters before and after one epoch, and the objective at its end.

        A run ends after the case's number of epochs, or before where one leaves the finite numbers.
        """
        problem = build(*_data(case), case)
        method, start = start_solver(problem, case, nudge)
        first: dict[str, np.ndarray] = {}
        done, change = 0, 0.0
        while done < case["epochs"] and np.isfinite(change):
            change = epochs(method, 1)[1]
            done += 1
            if done == 1:
                first = {k: a.copy() for k, a in method.parameters().items()}
        end = objective(problem, method)
        method.close()
        return {"start": start, "first": first, "objective": end, "epochs": done, "change": float(change)}

    def prepare(self, case: Case) -> float:
        """Take up a case to be timed, past its first epoch; return the seconds of one."""
        self._leave()
        problem = build(*_data(case), case)
        self._method, _ = start_solver(problem, case)
        make_ready(problem, self._method)
        first = epochs(self._method, 1)[0]
        return epochs(self._method, 1)[0] if first < SHORT else first

    def lap(self, count: int) -> float:
        """Return the seconds of an epoch, over so many."""
        return epochs(self._method, count)[0] / count

    def _leave(self) -> None:
        if self._method is not None:
            self._method.close()
            self._method = None


def _data(case: Case) -> tuple[Any, np.ndarray]:
    """Return X and y of a case; a binary loss gets the sign of y."""
    X, y = load(case["data"])
    X, y = X[: case["samples"]], y[: case["samples"]]
    return X, np.where(y >= 0.0, 1.0, -1.0) if case["binary"] else y


def serve(ask: IO[bytes], answer: IO[bytes]) -> None:
    """Answer requests, pairs of a method's name and its arguments, until the other side is gone."""
    worker = Worker()
    with contextlib.suppress(EOFError):
        while True:
            what, arguments = receive(ask)
            try:
                reply = {"answer": getattr(worker, what)(*arguments)}
            except Exception as error:
                # Another checkout's error is a finding to be shown, not the end of the comparison.
                reply = {"error": f"{type(error).__name__}: {error}"}
            send(answer, reply)


def main() -> None:
    """Keep standard output for messages; what is printed goes to standard error."""
    sys.path.insert(0, sys.argv[1])
    warnings.simplefilter("ignore")
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.stdin.buffer, answer)


if __name__ == "__main__":
    main()
