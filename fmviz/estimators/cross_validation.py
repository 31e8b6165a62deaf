"""Factorization machines with strengths chosen by cross-validation, like scikit-learn's LassoCV."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed

from fmviz.engine.errors import whole_number
from fmviz.engine.losses import Loss
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import Penalty
from fmviz.engine.problem import Problem
from fmviz.engine.schedule import STRENGTHS
from fmviz.engine.solvers import Solver
from fmviz.engine.starts.informed import why_empty
from fmviz.engine.target import Target
from fmviz.engine.threads import IN_TURN, Threads
from fmviz.paths.scaling import Scale
from fmviz.paths.validation import default_folds, finished, search_strengths

from .base import RandomState, generator
from .factorization_machine import FactorizationMachineClassifier, FactorizationMachineRegressor
from .fitting import by_output, keep_parameters
from .supervised import Weights


class _CrossValidated:
    """Common base of the regressor and the classifier."""

    # Settings of estimators without validation, which are chosen here or unused.
    model, augment = "fm", False
    lambda_w = lambda_p = lambda_sparse = init_scale = None
    callback = None
    start = "informed"
    warm_start = early_stopping = False
    _groups: Any = None
    _takes_parts = False

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Any:
        """Choose the strengths by validation, then fit to all rows.

        Parameters
        ----------
        X, y, sample_weight
            As for the estimator without validation.
        groups : (N,) array_like, optional
            Groups of rows, such as persons, for a `cv` splitter that keeps groups together.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data are invalid, or `cv` is not a splitter that supports `groups`.
        """
        if groups is not None and not hasattr(self.cv, "split"):
            raise ValueError(
                f"groups need a splitter that keeps groups together, but cv = {self.cv!r} does not; set, for "
                "example, cv=sklearn.model_selection.GroupKFold(5)."
            )
        self._groups = groups
        try:
            return super().fit(X, y, sample_weight)  # type: ignore[misc]
        finally:
            del self._groups

    def _mapper(self) -> Threads:
        # `n_jobs` threads run the folds.
        return IN_TURN

    def _fit(self: Any, X: Any, target: Target, sample_weight: Any, stratified: bool = False) -> None:
        rng, budget = generator(self.random_state), self._budget()
        problem, kept = self._problem(X, target, sample_weight, all_features=False)
        if self.cv is None:
            folds = default_folds(problem.y if problem.y.ndim == 1 else problem.y[:, 0], stratified, rng)
        else:
            splitter = check_cv(self.cv, problem.y, classifier=stratified)
            folds = [*splitter.split(X, problem.y, self._groups)]
        every = int(whole_number("verbose", int(self.verbose), 0))
        about = {"solver": self.solver, "one_se": self._switch("one_se")}
        if self.scoring is not None:
            about["measure"] = partial(self._loss, check_scoring(self, self.scoring))
        if self.n_jobs is not None:
            # Kernels release the interpreter lock.
            pool = Parallel(n_jobs=self.n_jobs, prefer="threads")
            about["each"] = lambda function, paths: pool(delayed(function)(path) for path in paths)
        choices = [
            finished(
                search_strengths(machine, folds, rng, **about),
                lambda trial: print(trial.message) if every else None,
            )
            for machine in problem.machines
        ]
        frames = [choice.frame for choice in choices]
        names = problem.target.output_names
        self.path_ = by_output(dict(zip(names, frames, strict=True))) if len(names) > 1 else frames[0]
        for name in STRENGTHS:
            setattr(self, f"{name}_", problem.joined([getattr(choice.best, name) for choice in choices]))
        problem = problem.at(**{name: getattr(self, f"{name}_") for name in STRENGTHS})
        start = problem.joined([choice.start for choice in choices])
        self._run(self._begin(problem, start, budget, rng, warm=False), kept=kept)

    def _loss(self: Any, scorer: Callable[..., float], held_out: Problem, fit: Parameters) -> float:
        """Return the negative score of a fit on held-out rows."""
        view, labels = clone(self), held_out.target.labels
        center = held_out.target.center
        view._keep(held_out, fit.shifted(center))
        view.n_features_in_ = held_out.design.n_features
        # The rows are already scaled.
        view._scale = Scale(np.zeros(view.n_features_in_), np.ones(view.n_features_in_))
        if labels is not None:
            view.classes_ = labels
        return -float(scorer(view, held_out.design.matrix, held_out.target.decode(held_out.y + center)))

    def _why_empty(self, problem: Problem, end: Parameters) -> str | None:
        """Return an explanation if the chosen strengths give a fit without interactions."""
        if why_empty(problem, end) is None:
            return None
        return (
            "Validation prefers no interactions: of all strengths tried (path_), those with P = 0 have the "
            "least loss on held-out rows."
        )


class FactorizationMachineRegressorCV(_CrossValidated, FactorizationMachineRegressor):
    """Sparse factorization machine for regression, with λ_w, λ_p and λ chosen by validation.

    λ_w is chosen first, by linear fits. Then, for each of two λ_p, a warm-started path of 25 strengths λ
    below the λ_max of the data is fitted in all folds, and stops early if the validation loss keeps
    increasing. From the best point, all three strengths are varied by factors of √10 as long as the loss
    decreases. The model with the lowest mean loss on held-out rows is then fitted to all rows. Objective and
    further attributes are those of `FactorizationMachineRegressor`.

    Parameters
    ----------
    rank, loss, regularizer, solver
        As for `FactorizationMachineRegressor`.
    cv : int, splitter of scikit-learn or iterable of (train, test), optional
        The folds; by default five, or for 5,000 rows or more a single held-out quarter.
    one_se : bool, default=False
        Whether to choose, among strengths whose loss is within one standard error of the lowest, those with
        the fewest pairs. The standard error is over the folds, or over fifths of a single held-out part.
    scoring : str or callable, optional
        A scikit-learn scorer for the held-out rows, such as "r2", "neg_mean_absolute_error" or "roc_auc";
        by default the mean loss. λ_w is always chosen by the loss. Several outputs are scored separately,
        classes one-vs-rest. Scorers see the scaled columns.
    n_jobs : int, optional
        The number of threads that fit the folds; -1 for all cores. With an integer, every fold has a separate
        random generator, and the results do not depend on the number; by default the folds run in sequence.
    fit_linear, fit_intercept, standardize, max_iter, tol, random_state, verbose, dtype
        As for `FactorizationMachineRegressor`; `verbose` prints every trial, and columns are scaled once, by
        all rows.

    Attributes
    ----------
    lambda_w_, lambda_p_, lambda_sparse_ : float
        The chosen strengths.
    P_, w_, intercept_, center_, scale_, used_features_, n_used_interactions_, feature_importances_
        As for `FactorizationMachineRegressor`.
    history_, certificate_, status_, n_iter_
        As for `FactorizationMachineRegressor`.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    path_ : DataFrame
        One row per trial: the strengths, ``validation_loss`` (with `scoring`, the negative score), its
        ``standard_error`` over the folds, and the mean ``used_interactions``. Several outputs are searched
        separately; ``output`` has their names.

    Examples
    --------
    >>> import fmviz
    >>> X, y, W = fmviz.datasets.make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)
    >>> machine = fmviz.FactorizationMachineRegressorCV(random_state=0).fit(X[:150], y[:150])
    >>> machine.score(X[150:], y[150:]) > 0.98
    True
    """

    def __init__(  # noqa: PLR0913 (scikit-learn: parameters are keywords)
        self,
        rank: int = 10,
        *,
        loss: str | Loss = "squared",
        regularizer: str | Penalty = "auto",
        solver: str | Solver = "auto",
        cv: int | Iterable[tuple[np.ndarray, np.ndarray]] | None = None,
        one_se: bool = False,
        scoring: str | Callable[..., float] | None = None,
        n_jobs: int | None = None,
        fit_linear: bool = True,
        fit_intercept: bool = True,
        standardize: bool | str = "auto",
        max_iter: int = 1_000,
        tol: float = 1e-4,
        random_state: RandomState | None = None,
        verbose: int = 0,
        dtype: str = "float64",
    ) -> None:
        keep_parameters(self, locals())


class FactorizationMachineClassifierCV(_CrossValidated, FactorizationMachineClassifier):
    """Sparse factorization machine for classification, with λ_w, λ_p and λ chosen by validation.

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        As for `FactorizationMachineClassifier`; it is also the validation loss.
    class_weight
        As for `FactorizationMachineClassifier`.
    rank, regularizer, solver, cv, one_se, scoring, n_jobs, fit_linear
        As for `FactorizationMachineRegressorCV`; folds are stratified.
    fit_intercept, standardize, max_iter, tol, random_state, verbose, dtype
        As for `FactorizationMachineRegressorCV`.

    Attributes
    ----------
    classes_ : (C,) ndarray
        The sorted labels; of two classes, the second is positive. With more classes, or several labels per
        row, there is a machine for each, and parameters and coefficients have an additional first axis.
    lambda_w_, lambda_p_, lambda_sparse_, path_, n_features_in_, feature_names_in_
        As for `FactorizationMachineRegressorCV`.

    Examples
    --------
    >>> import fmviz
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> machine = fmviz.FactorizationMachineClassifierCV(rank=2, cv=2, random_state=0).fit(X, y)
    >>> machine.interactions(top=1)[["feature_i", "feature_j"]].values.tolist()
    [[0, 1]]
    """

    def __init__(  # noqa: PLR0913 (scikit-learn: parameters are keywords)
        self,
        rank: int = 10,
        *,
        loss: str | Loss = "logistic",
        class_weight: Weights | None = None,
        regularizer: str | Penalty = "auto",
        solver: str | Solver = "auto",
        cv: int | Iterable[tuple[np.ndarray, np.ndarray]] | None = None,
        one_se: bool = False,
        scoring: str | Callable[..., float] | None = None,
        n_jobs: int | None = None,
        fit_linear: bool = True,
        fit_intercept: bool = True,
        standardize: bool | str = "auto",
        max_iter: int = 1_000,
        tol: float = 1e-4,
        random_state: RandomState | None = None,
        verbose: int = 0,
        dtype: str = "float64",
    ) -> None:
        keep_parameters(self, locals())
