"""One checkout of fmviz at work, in a process of its own: what `bench.checkouts` starts and commands.

    python -P bench/adapter.py ROOT

imports fmviz from ROOT, whichever commit that is, and answers requests. All that depends on the engine's API
is in this file, which therefore imports nothing of `bench`: each function takes the present API where the
checkout has it, and else that of commit bcea1f3, where parameters stand beside names. Data come in .npz
files, cases as dictionaries of names and numbers (`bench.cases`); requests and answers are pickled on
standard input and output.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
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


def has_penalties() -> bool:
    """Return whether losses, penalties and models are values that hold their parameters."""
    return find_spec("fmviz.engine.penalties") is not None


def bound(get: Callable[..., Any], name: str, settings: Mapping[str, Any]) -> Any:
    """Return what is called `name`, with parameters of its own."""
    if "settings" in inspect.signature(get).parameters:
        return get(name, dict(settings))
    return get(name, **settings)


def names() -> dict[str, list[str]]:
    """Return the names of the registries."""
    penalties = engine("penalties").PENALTIES if has_penalties() else engine("regularizers").REGULARIZERS
    return {
        "losses": list(engine("losses").LOSSES),
        "penalties": list(penalties),
        "models": list(engine("models").MODELS),
        "solvers": list(engine("solvers").SOLVERS),
    }


def build(X: Any, y: np.ndarray, case: Case) -> Any:
    """Return the problem of a case; raises ValueError where its parts do not fit together."""
    make = engine("problem").Problem.build
    more: dict[str, Any] = {
        "rank": case["rank"],
        "fit_linear": case["fit_linear"],
        "fit_intercept": case["fit_linear"],
        **case["strengths"],
    }
    if case["weighted"]:
        more["sample_weight"] = 0.5 + np.random.default_rng(1).random(y.size)
    design = engine("design").Design(X, case["dtype"])
    if has_penalties():
        get_loss, get_model = engine("losses").get_loss, engine("models").get_model
        get_penalty = engine("penalties").get_penalty
        return make(
            design,
            y,
            loss=bound(get_loss, case["loss"], case["loss_settings"]),
            penalty=bound(get_penalty, case["penalty"], case["penalty_settings"]),
            model=bound(get_model, case["model"], case["model_settings"]),
            **more,
        )
    return make(
        design,
        y,
        loss=case["loss"],
        # A loss has one parameter or none there.
        loss_param=next(iter(case["loss_settings"].values()), None),
        regularizer=case["penalty"],
        regularizer_params=case["penalty_settings"],
        model=case["model"],
        model_params=case["model_settings"],
        **more,
    )


def fits(case: Case) -> bool:
    """Return whether the checkout can run such a case, of whatever size."""
    why_not = engine("compatibility").why_not
    if not has_penalties():
        reason = why_not(
            case["penalty"],
            case["solver"],
            loss=case["loss"],
            model=case["model"],
            regularizer_params=case["penalty_settings"],
            model_params=case["model_settings"],
        )
        return reason is None
    rng = np.random.default_rng(0)
    try:
        problem = build(rng.normal(size=TINY), np.where(np.arange(TINY[0]) % 2, 1.0, -1.0), case)
    except ValueError:
        return False
    return why_not(problem, case["solver"]) is None


def start_solver(problem: Any, case: Case, nudge: int | None = None) -> tuple[Any, dict[str, np.ndarray]]:
    """Return a solver at the case's starting point, and the arrays of that point.

    With `nudge`, a seed, every entry of P or W that is not 0 begins one unit in the last place away, up or
    down.
    """
    solvers = engine("solvers")
    name, settings = case["solver"], case["solver_settings"]
    if hasattr(solvers, "make_solver"):
        method = solvers.make_solver(name, problem, **settings)
    else:
        method = bound(solvers.get_solver, name, settings).on(problem)
    start = problem.start(case["init_scale"], np.random.default_rng(0))
    arrays = parameters_as_arrays(start)
    if nudge is not None:
        sides = np.random.default_rng(nudge)
        for array in (arrays[matrix] for matrix in ("P", "W") if matrix in arrays):
            away = np.nextafter(array, sides.choice((-np.inf, np.inf), array.shape))
            # In place: it is the starting point's own.
            array[...] = np.where(array == 0.0, 0.0, away)
    before = {key: array.copy() for key, array in arrays.items()}
    method.start(start, np.random.default_rng(0))
    return method, before


def make_ready(problem: Any, method: Any) -> None:
    """Compile what a run will call, so that no timed epoch does."""
    engine("warmup").make_ready(problem, method)


def parameters_as_arrays(parameters: Any) -> dict[str, np.ndarray]:
    """Return the arrays that parameters consist of, not copies of them; a bias is one of shape ()."""
    if isinstance(parameters, Mapping):
        return dict(parameters)
    found = {name: getattr(parameters, name) for name in ("P", "w", "intercept", "W", "coefficients")}
    return {name: np.asarray(array) for name, array in found.items() if array is not None}


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
                first = {k: a.copy() for k, a in parameters_as_arrays(method.parameters()).items()}
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
