"""Findings on a table: effects of columns in the machine that predicts best, and those beyond chance."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd

from fmviz.engine.errors import one_of
from fmviz.engine.fit import Budget, Fit, never
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.sampling.posterior import Posterior
from fmviz.lab.interpretation.attributes import Attributes
from fmviz.lab.interpretation.chance import SIGNS, Beyond, beyond_chance
from fmviz.lab.interpretation.effects import Effects, as_posterior
from fmviz.lab.interpretation.wording import Wording, number
from fmviz.lab.runner import Run
from fmviz.lab.search.averaged import LOG_ODDS, Message
from fmviz.lab.search.contest import Contest, Name, contest_of
from fmviz.typography import counted

# The number of columns that are tested, alone and in pairs: those with the largest effects.
_MOST_TESTED = 60
# The number of pairs with a sentence.
_DESCRIBED = 60
# Smaller shrinkage of pairs is not mentioned.
_SHRUNK = 0.05


@dataclass(frozen=True, eq=False)
class Findings:
    """Effects of the columns of a table in a machine, and those that stand out from chance.

    Attributes
    ----------
    effects : Effects
        The decomposition of the machine by columns.
    beyond : tuple of Beyond
        The columns, then the pairs of columns beyond chance, each by descending share.
    lines : tuple of float
        The chance lines of the scores of columns and of pairs of columns.
    tested : int
        The number of columns tested.
    candidates : DataFrame
        The errors of all candidates on held-out rows; empty without a contest.
    message : str
        The outcome of the contest.
    output : str
        The output, if it is one of several.
    test : str
        A sentence on the test, if it is another one than of `of`.
    """

    effects: Effects
    beyond: tuple[Beyond, ...] = ()
    lines: tuple[float, float] = (np.inf, np.inf)
    tested: int = 0
    candidates: pd.DataFrame = field(default_factory=pd.DataFrame)
    message: str = ""
    output: str = ""
    test: str = ""

    @classmethod
    def of(
        cls,
        effects: Effects,
        problem: Problem,
        alone: np.ndarray | None = None,
        row_groups: np.ndarray | None = None,
        seed: int = 0,
    ) -> Self:
        """Test columns by the residuals of a constant, and their pairs by those of the columns alone.

        Parameters
        ----------
        effects : Effects
            The effects.
        problem : Problem
            The loss and the targets of the rows of `effects`.
        alone : (N,) ndarray, optional
            f of the columns alone, by default of a linear model.
        row_groups, seed
            See `beyond_chance`.
        """
        order = effects.mains["column"].tolist()
        if len(order) > _MOST_TESTED:
            # A column can act in pairs alone.
            order = list(dict.fromkeys([*order[: _MOST_TESTED // 2], *effects.coupled]))
        tested = sorted(order[:_MOST_TESTED])
        codes = {column: effects.codes(column) for column in tested}
        constant = np.full(len(problem.y), 0.0 if problem.loss.log_link else np.median(problem.y))
        each = [
            beyond_chance(codes, -problem.slope(f), row_groups, seed, size)
            for size, f in enumerate((constant, _alone(problem) if alone is None else alone), 1)
        ]
        (line, columns), (pair_line, pairs) = each
        return cls(effects, (*columns, *pairs), (line, pair_line), len(tested))

    @property
    def n_bytes(self) -> int:
        """The memory size in bytes."""
        return int(self.effects.posterior.P.nbytes)

    @cached_property
    def columns(self) -> pd.DataFrame:
        """The columns, those of largest size first.

        ``column``, its index; ``name``; ``size``, the standard deviation of its effect over the rows, in the
        unit of the effects; ``stands_out``, whether it is beyond chance; ``score`` and ``share``, see
        `fmviz.lab.interpretation.chance.Beyond`, NaN if not; ``sentence``.
        """
        mains = self.effects.mains
        sentences = [self.effects.main_sentence(column) for column in mains["column"]]
        return mains.join(self._tested(zip(mains["column"], strict=True))).assign(sentence=sentences)

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """All pairs of columns: those beyond chance by descending share, then all others by size.

        ``a`` and ``b``, the indices of the columns; ``first`` and ``second``, their names; ``size``,
        ``stands_out``, ``score`` and ``share`` as in `columns`. The first pairs also have the double
        difference that ``sentence`` describes: ``effect``; ``lower`` and ``upper``, its 95 % interval;
        ``both``, ``first_only``, ``second_only`` and ``neither``, the means of the model (log-odds for two
        classes); ``counted``, the double difference of the means of the rows, and ``counted_both``, …, these
        means.
        """
        return self._with_sentences(self._ordered)

    @cached_property
    def _ordered(self) -> pd.DataFrame:
        pairs = self.effects.pairs
        pairs = pairs.join(self._tested(zip(pairs["a"], pairs["b"], strict=True)))
        return pairs.sort_values(["stands_out", "share", "size"], ascending=False, ignore_index=True)

    def _with_sentences(self, pairs: pd.DataFrame) -> pd.DataFrame:
        records = []
        for a, b in pairs[["a", "b"]].head(_DESCRIBED).to_numpy():
            contrast = self.effects.contrast(a, b)
            records.append(
                (
                    *(contrast.effect, *(contrast.interval or (np.nan, np.nan)), *contrast.means),
                    *(contrast.of_counted, *contrast.counted),
                    self.effects.sentence_of(contrast),
                )
            )
        return pairs.join(pd.DataFrame(records, columns=_DIFFERENCE)).fillna({"sentence": ""})

    def _tested(self, keys: Iterator[tuple[int, ...]]) -> pd.DataFrame:
        """Return whether columns or pairs are beyond chance, with their scores and shares."""
        known = {each.columns: (True, each.score, each.share) for each in self.beyond}
        rows = [known.get(key, (False, np.nan, np.nan)) for key in keys]
        return pd.DataFrame(rows, columns=["stands_out", "score", "share"])

    @cached_property
    def ranked(self) -> pd.DataFrame:
        """Columns and pairs with a sentence, by size; ``a`` and ``b`` are their columns, ``b`` -1 for one."""
        columns, pairs = self.columns, self.pairs.head(_DESCRIBED)
        own = zip(columns["name"], columns["sentence"], strict=True)
        sentences = [sentence.removeprefix(f"{name}: ") for name, sentence in own]
        columns = columns.assign(a=columns["column"], b=-1, sentence=sentences).head(_DESCRIBED)
        every = pd.concat([columns, pairs.assign(name=pairs["first"] + " × " + pairs["second"])])
        return every.sort_values("size", ascending=False, kind="stable", ignore_index=True)

    @cached_property
    def named(self) -> pd.DataFrame:
        """The pairs of columns beyond chance, which `pairs` has first."""
        return self._with_sentences(self._ordered[self._ordered["stands_out"]])

    @property
    def sentences(self) -> list[str]:
        """Sentences on the numbers of pairs and columns beyond chance, and on the test."""
        few = f" Only the {self.tested:,} columns with the largest effects were tested."
        few *= self.tested < len(self.effects.columns)
        # Averages over samples are hardly shrunk.
        single = len(self.effects.posterior.P) == 1 and not self.test
        shrinkage = self.effects.shrinkage if single else 0.0
        shrunk = f" The penalties shrink effects of pairs by about {number(100 * shrinkage)} %."
        return [
            _standing(self._ordered, "pair", " of columns") + shrunk * (shrinkage > _SHRUNK),
            _standing(self.columns, "column"),
            self.test
            or f"Tested by the residuals of the columns alone (columns: of the mean), beside {SIGNS} sets of "
            f"random signs, at 1 % for all together; what repeats a stronger one does not count.{few}",
        ]

    def place(self, column: str | int) -> int:
        """Return the index of a column, given by name or index; ValueError if there is none."""
        names = [own.name for own in self.effects.columns]
        if isinstance(column, int | np.integer) and 0 <= column < len(names):
            return int(column)
        return names.index(one_of("column", column, names))

    def curve(self, column: str | int) -> pd.DataFrame:
        """Return the effect of a column: ``value``, ``effect``, ``lower``, ``upper`` and ``rows``.

        Parameters
        ----------
        column : str or int
            The column.

        Raises
        ------
        ValueError
            If there is no such column.
        """
        return self.effects.curve(self.place(column))

    def surface(self, first: str | int, second: str | int) -> pd.DataFrame:
        """Return the effect of a pair beyond both columns, by levels or ranges of the first and the second.

        Parameters
        ----------
        first, second : str or int
            The columns.

        Raises
        ------
        ValueError
            If there is no such column.
        """
        surface = self.effects.surface(self.place(first), self.place(second))
        axes = surface.first, surface.second
        index, columns = (pd.Index(axis.labels, name=axis.column.name) for axis in axes)
        return pd.DataFrame(surface.effect, index, columns)

    def to_dict(self) -> dict[str, Any]:
        """Return the columns, the pairs beyond chance, and the sentences, for JSON."""
        return {
            "output": self.output,
            "mains": self.columns.drop(columns="column")
            .rename(columns={"name": "column"})
            .to_dict("records"),
            "pairs": self.named.drop(columns=["a", "b"]).to_dict("records"),
            "chance_lines": dict(zip(("columns", "pairs"), self.lines, strict=True)),
            "message": " ".join(self.sentences),
        }


_CELLS = ("both", "first_only", "second_only", "neither")
_DIFFERENCE = [
    *("effect", "lower", "upper", *_CELLS, "counted"),
    *(f"counted_{cell}" for cell in _CELLS),
    "sentence",
]


def _standing(table: pd.DataFrame, noun: str, of: str = "") -> str:
    named, every = int(table["stands_out"].sum()), f"{counted(len(table), noun)}{of}"
    if not named:
        return f"None of {every} stands out from chance."
    return f"{named:,} of {every} {'stands' if named == 1 else 'stand'} out from chance."


def effects_of(run: Run, machine: Posterior) -> Effects:
    """Return the effects of samples, or of a fit as a single sample, in target units or log-odds."""
    wording = Wording(Attributes(run.dataset), run.experiment.loss.name)
    scale, unit, y = wording.scale, wording.unit, run.problem.y
    center = 0.0 if wording.scaling is None or wording.binary else wording.scaling.mean
    targets = None if wording.binary or wording.log_link else center + scale * y
    if wording.log_odds:
        scale, unit = LOG_ODDS if len(machine.P) > 1 else 1.0, f"log-odds of {wording.positive}"
        targets = np.asarray(y > 0, dtype=float)
    # Successive samples are correlated: half of them suffice.
    X, columns = run.problem.design.matrix, run.dataset.columns
    return Effects(machine[::2], X, columns, scale, unit, center, targets)


def read_findings(
    run: Run, parameters: Parameters, should_stop: Callable[[], bool] = never, sparsest: bool = False
) -> Iterator[Message | Findings]:
    """Hold the contest of a run, and yield the findings of the machine that describes them best."""
    contest = yield from contest_of(run, should_stop)
    chosen: Name = "pairs"
    if contest is not None:
        chosen = contest.sparsest if sparsest else contest.best
    if not should_stop():
        yield from (yield from described_outputs(contest, chosen, run, parameters, None, should_stop))


def described_outputs(
    contest: Contest | None,
    chosen: Name,
    run: Run,
    parameters: Parameters,
    posterior: Posterior | None = None,
    should_stop: Callable[[], bool] = never,
) -> Generator[Message, None, list[Findings]]:
    """Return the findings on every output after a contest, of sparse pairs or of samples; [] if stopped.

    `posterior` are the samples of the chosen candidate, if known. Without a contest, the effects are those of
    the run.
    """
    side, message, machine, alone = run, "", None, None
    candidates, name = pd.DataFrame(), chosen
    if contest is not None:
        side, candidates = contest.run, pd.DataFrame(contest.errors)
        name, message = contest.described(chosen), contest.message(chosen)
        parameters = contest.embedded(parameters, run)
        if name != "pairs":
            known = posterior if name == chosen else None
            machine = known or (yield from contest.machine(name, should_stop))
        if name != chosen:
            message += f" Effects are those of {contest.labels[name]}, which has intervals."
        columns = yield from contest.machine("columns", should_stop)
        if columns is None or (machine is None and name != "pairs"):
            return []
        scale = LOG_ODDS if columns.binary else 1.0
        alone = [scale * each.scores(side.problem.design.matrix) for each in columns.machines]
    findings, model = [], run.problem.model
    for c in range(model.n_outputs_of(parameters)):
        own = side.of_output(c)
        single = as_posterior(model.of_output(parameters, c)[1], own.problem.loss.task == "binary")
        effects = effects_of(own, single if machine is None else machine.machines[c])
        f = None if alone is None else alone[c]
        findings.append(
            replace(
                Findings.of(effects, own.problem, f, own.row_groups[0], own.experiment.seed),
                candidates=candidates,
                message=message,
                output=run.dataset.outputs[c] if run.dataset.outputs else "",
            )
        )
    return findings


def _alone(problem: Problem) -> np.ndarray:
    """Return f of a linear model with ½‖w‖² beside the sum of the losses."""
    ridge = Problem.build(
        problem.design, problem.target, loss=problem.loss, rank=0, lambda_w=0.5 / problem.y.size
    )
    end = Fit.of(ridge, budget=Budget(300, tol=1e-6, report_every=None)).end()
    return ridge.model.scores(ridge.design, end.parameters)
