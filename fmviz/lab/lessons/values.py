"""Numbers in lessons, computed from the settings of the page.

A step defines them under ``find``. A text is an expression of earlier numbers; a table has the name of a
quantity in `QUANTITIES` as ``of``, and its arguments. A quantity takes the query-string settings of the step
and the changes in the table.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from fmviz.engine.counting import used_features, used_interactions, used_mask
from fmviz.engine.errors import one_of
from fmviz.engine.snapshot import Snapshot
from fmviz.lab import operators
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation.outliers import caps_of, errors_of
from fmviz.lab.interpretation.reading import rows_with_all
from fmviz.lab.interpretation.threshold import emptying_strength
from fmviz.lab.lessons.steps import Answer, Question, Step
from fmviz.lab.operators.geometry import column_story
from fmviz.lab.runner import Run, load_dataset
from fmviz.lab.search.arena import STRENGTHS, arena, arena_truth
from fmviz.lab.values import to_query
from fmviz.metrics import interaction_weights

Values = dict[str, float]
Query = Mapping[str, str]

_EXPRESSIONS = ImmutableSandboxedEnvironment(undefined=StrictUndefined)


def evaluate(expression: str, values: Mapping[str, float]) -> float:
    """Return the value of a Jinja expression of numbers and names; 1 and 0 for true and false.

    Raises
    ------
    ValueError
        If the expression is invalid or a name is unknown.
    """
    try:
        value: Any = _EXPRESSIONS.compile_expression(expression, undefined_to_none=False)(**values)
        return float(value)
    except TemplateError as error:
        raise ValueError(f"{expression!r} cannot be evaluated: {error}.") from None


# ----------------------------------------------------------------------------------------------- quantities


def of_operator(
    query: Query, *, regularizer: str, count: str, row: int = 0, column: int = 0, **changes: Any
) -> float:
    """Return a count of an operator's result for the matrix P of the page Operators.

    Parameters
    ----------
    query : mapping of str
        The settings of that page.
    regularizer : str
        A key of `fmviz.lab.operators.VARIANTS`.
    count : str
        Any of "interactions", "between" (those of the first half of the features with the second),
        "features", "entries", "pairs" (the number of all pairs), "size" (of P), "entry" (the value at `row`
        and `column`), "given" (the same entry of P), "norm" (of row `row` of P), "largest" (the largest
        absolute entry of P), and "apart" (the number of λ of the page's slider at which both halves have
        interactions, but none across).
    row, column : int
        The position of the entry.
    **changes
        Changes to the settings of the page.
    """
    query = {**query, **to_query(changes)}
    if query.get("source") == "pasted":
        P = operators.parse_matrix(query["matrix"])
    else:
        seed, distribution = int(query.get("seed", 0)), query.get("distribution", "normal")
        P = operators.sample(int(query["d"]), int(query["k"]), distribution, seed)
    variant = operators.VARIANTS[one_of("regularizer", regularizer, tuple(operators.VARIANTS))]
    of_given: dict[str, Callable[[], float]] = {
        "pairs": lambda: math.comb(P.shape[0], 2),
        "size": lambda: P.size,
        "given": lambda: P[row, column],
        "norm": lambda: float(np.linalg.norm(P[row])),
        "largest": lambda: np.abs(P).max(),
        "apart": lambda: sum(
            all(used_interactions(half) > 0 for half in np.array_split(Q, 2)) and not _between(Q)
            for Q in (variant.penalty.prox(P, 2.0**e) for e in operators.EXPONENTS)
        ),
    }
    of_result: dict[str, Callable[[np.ndarray], float]] = {
        "interactions": used_interactions,
        "between": _between,
        "features": used_features,
        "entries": np.count_nonzero,
        "entry": lambda Q: Q[row, column],
    }
    one_of("count", count, (*of_given, *of_result))
    if count in of_given:
        return float(of_given[count]())
    return float(of_result[count](variant.penalty.prox(P, 2.0 ** int(query["log2lambda"]))))


def _between(Q: np.ndarray) -> float:
    half = len(Q) // 2
    return float(used_mask(Q)[:half, half:].sum())


def of_column(query: Query, *, count: str, **changes: Any) -> float:
    """Return a result of TI on the column of the page Geometry.

    `count` is "kept" (number of entries), "threshold" (subtracted from each entry), or "soft" (number of
    entries that ℓ₁ keeps at this λ).
    """
    query = {**query, **to_query(changes)}
    strength = float(query["tau"])
    story = column_story([float(query[f"e{j}"]) for j in range(1, 7)], strength)
    counts = {"kept": story.kept, "threshold": story.threshold, "soft": (abs(story.before) > strength).sum()}
    return float(counts[one_of("count", count, tuple(counts))])


def _experiment(query: Query, changes: Mapping[str, Any]) -> Experiment:
    return Experiment.from_query({**query, **to_query(changes)})


@functools.lru_cache(maxsize=64)
def _end(experiment: Experiment) -> Snapshot:
    return Run.prepare(experiment).end()


def of_fit(query: Query, *, figure: str, **changes: Any) -> float:
    """Return a final metric of the run with the settings of the training page.

    `figure` is a column of the run's curves, for instance "used_interactions" or "validation_rmse".
    """
    record = _end(_experiment(query, changes)).record()
    return float(record[one_of("figure", figure, tuple(record))])


def of_threshold(query: Query, **changes: Any) -> float:
    """Return the smallest strength without interactions, see `fmviz.lambda_max`."""
    return emptying_strength(_experiment(query, changes))


def _used(query: Query, changes: Mapping[str, Any]) -> np.ndarray:
    """Return the strict upper triangle of the used pairs at the end of a run, shape (d, d)."""
    return np.triu(used_mask(_end(_experiment(query, changes)).parameters.P), 1)


def of_seeds(query: Query, *, seeds: int, least: int, **changes: Any) -> float:
    """Return the number of pairs used by at least `least` runs with seeds 0, 1, …, `seeds` − 1."""
    times = sum(_used(query, {**changes, "seed": seed}).astype(int) for seed in range(seeds))
    return float(np.count_nonzero(times >= least))


def of_siblings(query: Query, *, used: bool, **changes: Any) -> float:
    """Return the number of pairs of levels of the same attribute, in total or used by a run."""
    groups = np.array(load_dataset(_experiment(query, changes).dataset).groups)
    same = np.triu(groups[:, None] == groups[None, :], 1)
    return float(np.count_nonzero(same & _used(query, changes) if used else same))


def of_weight(query: Query, *, first: str = "", second: str = "", **changes: Any) -> float:
    """Return the weight of a pair of features at the end of a run, by default the lowest weight."""
    experiment = _experiment(query, changes)
    W = interaction_weights(_end(experiment).parameters)
    if not first:
        return float(W[np.triu_indices(len(W), 1)].min())
    names = load_dataset(experiment.dataset).feature_names
    return float(W[names.index(first), names.index(second)])


def of_rows(query: Query, *, first: str, second: str = "", **changes: Any) -> float:
    """Return the number of rows in which a feature, or both of two features, are non-zero."""
    dataset = load_dataset(_experiment(query, changes).dataset)
    i, j = (dataset.feature_names.index(name) for name in (first, second or first))
    return float(rows_with_all(dataset, np.array([[i, j]]))[0])


def of_aside(query: Query, *, count: str, **changes: Any) -> float:
    """Return a number of training rows at the end of a run.

    `count` is "rows" (all), "wrong" (synthetic errors), "aside" (beyond the caps of the loss), or "both".
    """
    experiment = _experiment(query, changes)
    run = Run.prepare(experiment)
    errors = errors_of(run, _end(experiment).parameters)
    aside = errors.beyond((caps_of(run.problem.loss) or (math.inf, math.inf))[1])
    wrong = np.zeros(aside.size, dtype=bool) if errors.wrong is None else errors.wrong
    counts = {"rows": aside.size, "wrong": wrong.sum(), "aside": aside.sum(), "both": (aside & wrong).sum()}
    return float(counts[one_of("count", count, tuple(counts))])


def of_arena(query: Query, *, regularizer: str, count: str, strength: float = STRENGTHS[0]) -> float:
    """Return a result of the models on the start page, independent of settings.

    Parameters
    ----------
    query : mapping of str
        Ignored.
    regularizer : str
        One of `fmviz.lab.search.arena.REGULARIZERS`.
    count : str
        For the median start: the numbers of used "pairs", of "true" and of cross-group ("between") ones among
        them, and of used "features", and the "weight" of the pair explained on the page. "truth" is the
        number of true pairs. The others count exact fits, which use exactly the true pairs: "starts", the
        starts with one at this strength; "ever", the starts with one at any strength; "exact", the largest
        number of strengths with one from a single start.
    strength : float
        λ, one of `fmviz.lab.search.arena.STRENGTHS`.
    """
    truth = arena_truth() != 0
    matters = truth.any(axis=0)
    starts, at = arena(), STRENGTHS.index(strength)
    P, exact = starts.path[regularizer][at], starts.f1[regularizer] == 1.0
    used = np.triu(used_mask(P), 1)
    counts: dict[str, Callable[[], float]] = {
        "pairs": used.sum,
        "true": (used & truth).sum,
        "truth": np.triu(truth, 1).sum,
        "between": (used & ~truth & np.outer(matters, matters)).sum,
        "features": lambda: used_features(P),
        "weight": lambda: P[starts.pair[0]] @ P[starts.pair[1]],
        "starts": exact[:, at].sum,
        "ever": exact.any(axis=1).sum,
        "exact": exact.sum(axis=1).max,
    }
    return float(counts[one_of("count", count, tuple(counts))]())


QUANTITIES: dict[str, Callable[..., float]] = {
    "operator": of_operator,
    "column": of_column,
    "fit": of_fit,
    "threshold": of_threshold,
    "seeds": of_seeds,
    "siblings": of_siblings,
    "rows": of_rows,
    "weight": of_weight,
    "aside": of_aside,
    "arena": of_arena,
}
"""The quantities for ``of`` in lessons."""


def calculate(step: Step, **changes: Any) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a step with names; ValueError if one cannot be computed.

    `changes` override settings of the page, such as the seed.
    """
    values: Values = {}
    query = {**step.after.settings, **to_query(changes)}
    for name, expected in step.find.items():
        if isinstance(expected, str):
            values[name] = evaluate(expected, values)
        else:
            arguments = dict(expected)
            quantity = one_of(f"The quantity of {name!r}", arguments.pop("of", None), tuple(QUANTITIES))
            values[name] = QUANTITIES[quantity](query, **arguments)
        yield name, values[name]


# ------------------------------------------------------------------------------------------------- answers


def right_choice(question: Question, values: Mapping[str, float]) -> Answer:
    """Return the choice whose condition is true; ValueError unless exactly one is."""
    true = [choice for choice in question.choices if evaluate(choice.condition, values)]
    if len(true) != 1:
        raise ValueError(f"{len(true)} choices of {question.text!r} are correct; exactly one must be.")
    return true[0]


def is_right(question: Question, said: str | float, values: Mapping[str, float]) -> bool:
    """Return whether a prediction is correct."""
    if question.choices:
        return said == right_choice(question, values).words
    truth = evaluate(question.answer, values)
    return abs(float(said) - truth) <= question.within * abs(truth) + 1e-9
