"""L-BFGS for the canonical factorization machine, from scipy."""

from __future__ import annotations

import contextvars
import threading
import time
import weakref
from queue import SimpleQueue
from typing import Any, ClassVar

import numpy as np

from ..errors import WhyNot
from ..parameters import Parameters
from ..problem import Formulation
from ..settings import ParamSpec
from ._flat_problem import Joint, JointSolver
from .kernels.coefficients import CoefficientStep, coefficient_change

# scipy requires a limit.
_ENDLESS = 2**31 - 1


def _optimise(
    joint: Joint, start: np.ndarray, memory: int, orders: SimpleQueue, results: SimpleQueue
) -> None:
    """Run scipy's L-BFGS in a helper thread, one iteration per request.

    The thread waits for a request before every iteration: True to run it, False to end. It responds with the
    new point, with None when finished, or with the exception that ended it, and with the CPU time so far. It
    holds no reference to the solver: an unused solver is garbage-collected, which requests the end.
    """
    # Imported here because it dominates the import time of the engine, and no other solver needs it.
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


class LBFGS(JointSolver):
    """Limited-memory BFGS on (P, w, bias) jointly (Liu and Nocedal 1989).

    An epoch is one iteration of ``scipy.optimize.minimize(method="L-BFGS-B")`` without bounds; its memory
    persists between epochs. scipy cannot be stepped and therefore runs in a helper thread that waits between
    epochs; the thread ends with `close`, with the run, or when the solver is garbage-collected. The line
    search requires a decrease, and the objective never increases. If scipy finds no decrease beyond rounding,
    the point is unchanged and the change is 0.

    If the column weights λ are also fitted ([B] Section 9.1), an epoch fits λ exactly and then runs a few
    iterations on (P, w, bias) with fixed λ. Curvature estimated at one λ is of little use at the next, and is
    discarded after each epoch.
    """

    # The number of iterations per epoch if λ is fitted.
    iterations = 10

    name: ClassVar[str] = "lbfgs"
    label: ClassVar[str] = "L-BFGS"
    fits_coefficients: ClassVar[bool] = True
    takes_powers: ClassVar[bool] = True
    params: ClassVar[tuple[ParamSpec, ...]] = (
        ParamSpec("memory", "int", 10, 1, 1000, help="The number of past steps used for the next one."),
    )

    def prepare(self) -> None:
        super().prepare()
        problem = self.problem
        self._coefficient_step = CoefficientStep(problem) if problem.model.fits_coefficients else None
        self._end: weakref.finalize | None = None
        self._worked = 0.0

    @property
    def memory(self) -> tuple[str, ...]:  # type: ignore[override]
        """The state to resume from; empty if scipy's internal memory, which is inaccessible, persists."""
        return ("_joint", "_x") if self.problem.model.fits_coefficients else ()

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        penalty = problem.penalty
        if not penalty.smooth:
            return WhyNot(
                "not_smooth",
                f"L-BFGS needs a gradient everywhere to build its quadratic model; {penalty.label} is not "
                "differentiable at the zeros of P, which smooth steps never reach. "
                f"Use {'APGD' if penalty.exact_prox else 'nmAPGD'}, which takes proximal steps.",
            )
        return None

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        self.close()
        super().start(parameters, rng)
        if self._coefficient_step is not None:
            return
        self._done = False
        self._worked = 0.0
        orders: SimpleQueue[bool] = SimpleQueue()
        self._orders = orders
        self._results: SimpleQueue[Any] = SimpleQueue()
        arguments = (self._joint, self._x.copy(), self.settings["memory"], orders, self._results)
        # The caller's context includes its floating-point error handling.
        self._thread = threading.Thread(
            target=contextvars.copy_context().run,
            args=(_optimise, *arguments),
            name="fmviz-lbfgs",
            daemon=True,
        )
        self._thread.start()
        self._end = weakref.finalize(self, orders.put, False)

    def epoch(self) -> float:
        if self._coefficient_step is not None:
            return self._alternate(self._coefficient_step)
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

    def _alternate(self, step: CoefficientStep) -> float:
        """Fit λ, then run a few iterations on the other parameters; return the relative change."""
        # Imported here, as in the thread: only this solver needs scipy.optimize.
        from scipy.optimize import minimize

        before = self.parameters()
        fitted = step.refit(before)
        joint, x = self._joint, self._joint.pack(fitted)
        with np.errstate(over="ignore", invalid="ignore"):
            options = {
                "maxcor": self.settings["memory"],
                "maxiter": self.iterations,
                "ftol": 0.0,
                "gtol": 0.0,
            }
            result = minimize(
                joint.smooth_value_and_gradient, x, jac=True, method="L-BFGS-B", options=options
            )
        self._x = result.x
        return max(coefficient_change(before, fitted), joint.change(self._x, self._x - x))

    def clock(self) -> float:
        """Return the CPU time of the calling thread plus that of the helper thread."""
        return super().clock() + self._worked

    def close(self) -> None:
        """End the helper thread; the parameters remain readable."""
        if self._end is not None:
            self._end()
            self._end = None
            self._done = True
            self._thread.join()
