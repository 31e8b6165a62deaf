"""Strengths chosen, a fit with them in the store, an average beside it: as a page watches it."""

from __future__ import annotations

import pytest
from programs import printed

from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run
from fmviz.lab.runs.program import with_header
from fmviz.lab.search import contest as contests
from fmviz.lab.search.averaged import Message
from fmviz.lab.search.contest import contest_of
from fmviz.lab.search.first_fit import FirstFit, first_fit, first_fit_program
from fmviz.paths.validation import Trial, finished

EXPERIMENT = Experiment(dataset="balance_scale", rank=3, validation=0.3, loss="logistic")


def test_every_step_says_what_it_is_and_the_fit_is_stored_and_repeated(store):
    steps = list(first_fit(Run.prepare(EXPERIMENT), store))
    assert list(dict.fromkeys(map(type, steps))) == [Trial, Message, FirstFit]
    assert all(step.message for step in steps)
    fit, last = (step for step in steps if isinstance(step, FirstFit))
    assert fit.search["tried"] == [step.record() for step in steps if isinstance(step, Trial)]
    stored = store.get(fit.stored)
    assert stored.experiment == fit.run.experiment
    again = Run.prepare(stored.experiment).end()
    assert again.objective == pytest.approx(stored.last["objective"], rel=1e-12) == fit.end.objective
    assert store.count() == 1
    assert last.chosen == last.contest.best
    assert (last.posterior is None) == (last.chosen == "pairs")
    # The page that explains the run has the same contest.
    assert finished(contest_of(Run.prepare(stored.experiment))) is last.contest
    contests._contests._values.clear()
    assert printed(first_fit_program(EXPERIMENT)) == [step.message for step in steps]


def test_a_stopped_search_ends_where_it_is():
    asked = iter(range(1_000))
    steps = list(first_fit(Run.prepare(EXPERIMENT), should_stop=lambda: next(asked) > 3))
    assert all(isinstance(step, Trial) for step in steps)
    with pytest.raises(ValueError, match="before the first fit"):
        list(first_fit(Run.prepare(EXPERIMENT), should_stop=lambda: True))


def test_the_header_names_link_data_and_versions():
    code = with_header(
        "print(1)\n", "A run", link="http://x/train?seed=1", data={"d": "ab"}, versions={"v": "1"}
    )
    assert code.startswith("# A run\n# http://x/train?seed=1\n# data d ab\n# made with v 1\n# Requires fmviz")
    assert code.endswith("\n\nprint(1)\n")


def test_a_title_with_line_breaks_stays_a_comment():
    code = with_header("", "a\nprint('run')\r\fb", versions={"v\n": "1\nprint()"})
    assert code.startswith("# a print('run') b\n# made with v 1 print()\n# Requires")
