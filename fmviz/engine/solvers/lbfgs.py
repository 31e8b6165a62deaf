"""L-BFGS for the canonical factorization machine, by scipy."""

from __future__ import annotations

import contextvars
import threading
import time
import weakref
from queue import SimpleQueue
from typing import Any, ClassVar

import numpy as np

from ..params import ParamSpec
from ..problem import Problem
from ..snapshot import Parameters
from ._coefficients import CoefficientStep
from ._joint import Joint
from .base import Solver

# scipy wants some limit.
_ENDLESS = 2**31 - 1


def _optimise(
    joint: Joint, start: np.ndarray, memory: int, orders: SimpleQueue, results: SimpleQueue
) -> None:
    """Run scipy's L-BFGS, handing over after each iteration; body of the helper thread.

    It waits for an order before every iteration: True to make one, False to end. It answers with the new
    point, with None once there is nothing more to do, or with the exception that ended it, and with the
    processor time it has taken so far. It knows nothing of the solver, so that a forgotten solver is
    collected, which orders the end.
    """
    # A good part of the time that the whole engine takes to import, and no other solver needs it.
    from scipy.optimize import minimize

    if not orders.get():
        return
    begin = time.thread_time()

    def answer(what: Any) -> None:
        results.put((what, time.thread_time() - begin))

    def hand_over(intermediate_result: Any) -> None:
        answer(intermediate_result.x.copy())
        if not orders.get():
            raise StopIteration

    try:
        with np.errstate(over="ignore", invalid="ignore"):
            minimize(
                joint.smooth_value_and_gradient,
                start,
                jac=True,
                method="L-BFGS-B",
                callback=hand_over,
                options={
                    "maxcor": memory,
                    "maxiter": _ENDLESS,
                    "maxfun": _ENDLESS,
                    "maxls": 50,
                    "ftol": 0.0,
                    "gtol": 0.0,
                },
            )
        answer(None)
    except Exception as error:
        answer(error)


class LBFGS(Solver):
    """Limited-memory BFGS on (P, w, bias) jointly.

    An epoch is one iteration of ``scipy.optimize.minimize(method="L-BFGS-B")`` without bounds, with the
    memory kept from epoch to epoch. scipy cannot be stepped, so it runs in a helper thread that waits
    between epochs; the thread ends with `close`, with the run, or when the solver is forgotten. The line
    search asks for a fall, so the objective never rises. Where scipy finds no lower value, to rounding, the
    point stays and the change is 0.
    """

    name: ClassVar[str] = "lbfgs"
    label: ClassVar[str] = "L-BFGS"
    source: ClassVar[str] = "Liu and Nocedal (1989), through scipy"
    about: ClassVar[str] = (
        "A quasi-Newton method that learns the curvature from past gradients. For the smooth penalty ℓ₂² "
        "only. The objective never rises."
    )
    fits_coefficients: ClassVar[bool] = True
    takes_powers: ClassVar[bool] = True
    params: ClassVar[tuple[ParamSpec, ...]] = (
        ParamSpec("memory", "int", 10, 1, 1000, help="Past steps that shape the next one."),
    )

    def __init__(self, problem: Problem, **params: Any) -> None:
        super().__init__(problem, **params)
        self._joint = Joint(problem)
        self._end: weakref.finalize | None = None
        self._worked = 0.0

    @classmethod
    def for_model(cls, model: Any) -> type[Solver]:
        """See `Solver.for_model`."""
        return AlternatingLBFGS if model.fits_coefficients else cls

    @classmethod
    def why_not(
        cls, model: Any, regularizer: Any, loss: Any, regularizer_params: dict[str, Any]
    ) -> str | None:
        """See `Solver.why_not`."""
        if regularizer.name != "l2":
            return (
                "L-BFGS builds one quadratic model from gradients and so needs a gradient everywhere; "
                f"{regularizer.label} has none where it makes P sparse, and no smooth step lands there. "
                f"Use {'APGD' if regularizer.exact_prox else 'nmAPGD'}, which takes proximal steps."
            )
        return None

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        """See `Solver.start`."""
        self.close()
        self._x = self._joint.pack(parameters)
        self._done = False
        self._worked = 0.0
        orders: SimpleQueue[bool] = SimpleQueue()
        self._orders = orders
        self._results: SimpleQueue[Any] = SimpleQueue()
        arguments = (self._joint, self._x.copy(), self.settings["memory"], orders, self._results)
        # The caller's context holds its floating-point error handling.
        self._thread = threading.Thread(
            target=contextvars.copy_context().run,
            args=(_optimise, *arguments),
            name="fmviz-lbfgs",
            daemon=True,
        )
        self._thread.start()
        self._end = weakref.finalize(self, orders.put, False)

    def epoch(self) -> float:
        """See `Solver.epoch`."""
        if self._done:
            return 0.0
        self._orders.put(True)
        answer, self._worked = self._results.get()
        if not isinstance(answer, np.ndarray):
            self._done = True
            if answer is not None:
                raise answer
            return 0.0
        before, self._x = self._x, answer
        return self._joint.change(answer, answer - before)

    def parameters(self) -> Parameters:
        """See `Solver.parameters`."""
        return self._joint.copy(self._x)

    def clock(self) -> float:
        """Return the processor time of the calling thread and of the helper thread, which does the work."""
        return super().clock() + self._worked

    def close(self) -> None:
        """End the helper thread; what was reached stays readable."""
        if self._end is not None:
            self._end()
            self._end = None
            self._done = True
            self._thread.join()


class AlternatingLBFGS(LBFGS):
    """L-BFGS for models whose columns have fitted weights ([B] Section 9.1).

    An epoch fits λ, exactly, and then makes a few iterations on (P, w, bias) with λ held. The curvature
    learnt under one λ says little under the next, so each epoch learns its own.
    """

    iterations = 10
    memory: ClassVar[tuple[str, ...]] = ("_joint", "_x")

    def __init__(self, problem: Problem, **params: Any) -> None:
        super().__init__(problem, **params)
        self._coefficient_step = CoefficientStep(problem)

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        """See `Solver.start`."""
        self._x = self._joint.pack(parameters)

    def epoch(self) -> float:
        """See `Solver.epoch`."""
        # Imported here, as in the thread: two solvers alone need scipy.optimize.
        from scipy.optimize import minimize

        before = self.parameters()
        fitted = self._coefficient_step.refit(before)
        joint, x = self._joint, self._joint.pack(fitted)
        with np.errstate(over="ignore", invalid="ignore"):
            options = {
                "maxcor": self.settings["memory"],
                "maxiter": self.iterations,
                "ftol": 0.0,
                "gtol": 0.0,
            }
            found = minimize(joint.smooth_value_and_gradient, x, jac=True, method="L-BFGS-B", options=options)
        moved = float(np.abs(fitted.multipliers - before.multipliers).max(initial=0.0))
        size = max(float(np.abs(fitted.multipliers).max(initial=0.0)), moved)
        self._x = found.x
        return max(moved / size if size else 0.0, joint.change(self._x, self._x - x))
