"""The page Compare: regularizers at equal sparsity or under one λ, and runs side by side."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from fmviz.engine.settings import ParamSpec
from fmviz.figures import comparison as figures
from fmviz.figures.training import CONVERGENCE, gap
from fmviz.lab.background.task import TaskState, TaskView
from fmviz.lab.background.tasks import PLANS, manager
from fmviz.lab.background.thinned import EXACT_FEATURES
from fmviz.lab.catalog import dataset_spec
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment, suggested
from fmviz.lab.interpretation.comparison import (
    SHRINKAGE,
    chosen_words,
    conclusion,
    error_words,
    leaders,
    range_words,
)
from fmviz.lab.runner import load_dataset, truth_of
from fmviz.lab.runs.program import equal_sparsity_program
from fmviz.lab.runs.provenance import data_hash
from fmviz.lab.search.equal_sparsity import (
    SearchFit,
    at_equal_sparsity,
    comparison_base,
    ends_table,
    shipped,
    suggested_target,
)
from fmviz.lab.search.strength_path import (
    METHODS,
    MOST_NUMBERS,
    PathPlan,
    fit_words,
    range_to_empty,
    strengths,
    trace,
)
from fmviz.lab.store import RunStore, StoredRun, store
from fmviz.lab.store.lowest import lowest
from fmviz.lab.store.table import (
    differing,
    in_words,
    seeds_folded,
    title_of_run,
)
from fmviz.metrics import COLUMNS, OBJECTIVE, SUPPORT_F1, Metric, support_f1, used_pairs
from fmviz.paths import accepted_range
from fmviz.ui import arena, navigation, shell, widgets
from fmviz.ui.charts import chart
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings, Several, Text
from fmviz.ui.starts import follow_data
from fmviz.ui.watching import controls, draw_fits

# ---------------------------------------------------------------------------------------- at equal sparsity


_DUEL_HEIGHT, _SMALL_HEIGHT = 260, 150


def _draw_equal_sparsity(settings: Settings, linked: bool) -> None:
    """Draw the comparison at equal sparsity: its settings, progress and result."""
    experiment = comparison_base(settings["dataset"], settings["seed"])
    dataset = load_dataset(experiment.dataset)
    follow_data(settings, linked, ("target",), lambda: settings.set(target=suggested_target(dataset)))
    names, target, seeds = (settings[name] for name in ("fighters", "target", "seeds"))
    accept = accepted_range(target)
    search = partial(at_equal_sparsity, experiment, names, target, seeds=seeds)
    task = manager().get(key := f"duel:{experiment.digest}:{target}:{seeds}:{','.join(names)}")
    fits = shipped(experiment, names, target, seeds) if task is None else []
    number = plain(range_words(accept))
    line = f"{widgets.labels_of(names)} · {number} interactions" + f" · {int(seeds)} seeds" * (seeds > 1)
    title = plain(dataset_spec(settings["dataset"]).title)
    with shell.settings_box("compare_duel_box", line, folded=task is not None or bool(fits)):
        st.markdown(
            f"**{title}**: each regularizer at the weakest λ, of twelve per decade, that leaves "
            f"{number} interactions."
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            widgets.regularizers(settings, "fighters", place=st.container(width="content"))
            most, place = math.comb(dataset.X.shape[1], 2), st.container(width=150)
            widgets.param(settings, "target", "Interactions", style="number", most=most, place=place)
            widgets.param(settings, "seeds", "Seeds", style="number", place=st.container(width=110))
    row = controls(
        settings,
        task,
        "Run" if task is None else "Run again",
        partial(manager().submit, key, search, PLANS),
        icon=":material/balance:",
        names=("duel", "duel_stop"),
        disabled=not names or (task is not None and task.state.active),
    )
    drawn = partial(_draw_duel, experiment, names, target, accept)
    if fits:
        row.caption(":material/inventory_2: Precomputed, shipped with fmviz. **Run** computes it again.")
        drawn(fits, finished=True)
    elif task is not None:
        draw_fits(
            task,
            lambda view: drawn(_chosen(view), finished=view.state is TaskState.FINISHED),
            row,
            now=fit_words,
            parts=lambda view: len(_chosen(view)),
        )
    elif _why_not_drawn(dataset) is None:
        arena.draw_empty(names, dataset, "compare_no_duel", _DUEL_HEIGHT, "No search yet")
    if fits or (task is not None and task.state.ended and task.view().items):
        widgets.python_block(
            widgets.linked(
                equal_sparsity_program(experiment, names, target, seeds),
                f"{', '.join(names)} on {experiment.dataset} at {target:,} interactions, "
                f"{seeds} seeds from {experiment.seed}",
                data={experiment.dataset.name: data_hash(dataset)},
            ),
            "Repeats the search and prints the rows above.",
        )


def _chosen(view: TaskView) -> list[SearchFit]:
    return [fit for fit in view.items if fit.parameters is not None]


def _draw_duel(
    experiment: Experiment,
    names: Sequence[str],
    target: int,
    accept: tuple[int, int],
    fits: Sequence[SearchFit],
    *,
    finished: bool,
) -> None:
    """Draw chosen fits: the conclusions, errors and λ, and the matrices of every seed."""
    ends = _ends(experiment, names, target, fits)
    if ends is None:
        return
    table, metric, reference, said = ends
    dataset = load_dataset(experiment.dataset)
    left, right = st.columns([1, 1], gap="medium")
    left.markdown(plain(said))
    left.caption(SHRINKAGE)
    with right:
        st.markdown(
            f"Left: **{metric.label}** :small[○ fitted · ● refitted, λ = 0 · ✕ nearest]. Right: **λ** "
            ":small[● chosen – strongest in range]"
        )
        chart(
            figures.equal_sparsity(table, metric, 34 + 27 * len(names)),
            key="compare_duel_chart",
            alt=f"{metric.label} as fitted and refitted without λ, and the chosen λ. {said}",
        )
    seeds = table["seed"].unique()
    for seed, panels in _frames(table, dataset).items():
        if len(seeds) > 1:
            st.caption(f"Seed {int(seed)}")
        height = _DUEL_HEIGHT if len(seeds) == 1 else _SMALL_HEIGHT
        arena.draw_panels(panels, dataset, f"compare_duel_view_{seed}", height)
    shown = table if truth_of(dataset) is not None else table.assign(F1=math.nan)
    st.caption(plain(chosen_words(shown, metric, accept)))
    number = st.column_config.NumberColumn
    st.dataframe(
        table.drop(columns="fit"),
        column_order=["label"]
        + ["seed"] * (len(seeds) > 1)
        + ["λ", "strongest", "interactions", "Features", "value", "refitted"]
        + ["F1"] * bool(table["F1"].notna().any())
        + ["Fits"],
        hide_index=True,
        key="compare_duel_table",
        column_config={
            "label": st.column_config.TextColumn("Regularizer", width="small"),
            "seed": number("Seed", width="small"),
            "λ": number(format="%.5g", width="small"),
            "strongest": number("Strongest λ", format="%.5g", width="small"),
            "interactions": number("Interactions", format="localized", width="small"),
            "Features": number(format="localized", width="small"),
            "value": number(metric.label, format="%.5g", width="small"),
            "refitted": number("Refitted", format="%.5g", width="small"),
            "F1": number(f"F1 to {reference}" if reference else SUPPORT_F1.label, format="%.3f"),
            "Fits": number(width="small"),
        },
    )
    if finished:
        widgets.save_page(
            "compare_duel_page",
            partial(equal_sparsity_page, experiment, names, target, fits),
            "equal-sparsity",
        )


def _ends(
    experiment: Experiment, names: Sequence[str], target: int, fits: Sequence[SearchFit]
) -> tuple[pd.DataFrame, Metric, str, str] | None:
    """Return the table of chosen fits, their metric, the reference of F1 and the conclusion."""
    metric = next((m for m in COLUMNS.values() if any(m.name in fit.metrics for fit in fits)), None)
    if metric is None:
        return None
    accept, dataset, reference = accepted_range(target), load_dataset(experiment.dataset), ""
    table = ends_table(fits, names, accept, metric)
    best = leaders(table, "value", metric)
    if _why_not_drawn(dataset) is None and best and truth_of(dataset) is None:
        reference = best[0]
        own = {
            fit.experiment.seed: used_pairs(fit.parameters)
            for fit in table["fit"][table["label"] == reference]
        }
        table["F1"] = [support_f1(own[fit.experiment.seed], fit.parameters) for fit in table["fit"]]
    complete = len(table) == len(names) * table["seed"].nunique()
    return table, metric, reference, conclusion(table, metric, target, accept, reference) if complete else ""


def _frames(table: pd.DataFrame, dataset: Dataset) -> dict[int, dict[str, list[Any]]]:
    """Return the matrices of chosen fits by seed and regularizer, none if they cannot be drawn."""
    drawable = _why_not_drawn(dataset) is None
    return {
        seed: {fit.experiment.regularizer.name: [arena.fitted(fit.parameters.P, "", dataset)] for fit in fits}
        for seed, fits in (table["fit"].groupby(table["seed"]) if drawable else ())
    }


def equal_sparsity_page(
    experiment: Experiment, names: Sequence[str], target: int, fits: Sequence[SearchFit]
) -> str:
    """Return chosen fits as a page, with a frame of the matrices for every seed."""
    ends = _ends(experiment, names, target, fits)
    assert ends is not None, "requires an error"
    table, metric, _, said = ends
    frames: dict[str, list[Any]] = {}
    for seed, panels in _frames(table, load_dataset(experiment.dataset)).items():
        for name, (frame,) in panels.items():
            frames.setdefault(name, []).append(replace(frame, key=f"Seed {seed}"))
    shown = {
        "label": "Regularizer",
        "seed": "Seed",
        "value": metric.label,
        "refitted": "Refitted",
        "interactions": "Interactions",
        "λ": "λ",
    }
    marked = [f"{n:,}{' ✕' * off}" for n, off in zip(table["interactions"], table["nearest"], strict=True)]
    rows = table.assign(interactions=marked)[[*shown]].rename(columns=shown).to_dict("records")
    return arena.page(
        "at equal sparsity", experiment, frames, notes=[said], along="seeds", tables=[("The fits", rows)]
    )


# ---------------------------------------------------------------------------------------------- under one λ


_HEIGHT = 300


def _draw_strengths(settings: Settings, linked: bool) -> None:
    """Draw the fitted models along λ; a slider in the browser chooses the strength."""
    data = load_dataset(settings["dataset"])
    if (reason := _why_not_drawn(data)) is not None:
        st.info(plain(reason), icon=":material/grid_off:")
        return
    if not settings["fighters"]:
        widgets.regularizers(settings, "fighters")
        st.info("Choose at least one regularizer above.", icon=":material/touch_app:")
        return
    plan = _plan(settings, data.X.shape[1])
    key = f"path:{plan.digest}"
    line = f"{widgets.labels_of(settings['fighters'])} · {len(plan.lambdas)} values of λ"
    with shell.settings_box("compare_along_box", line, folded=manager().get(key) is not None):
        widgets.regularizers(settings, "fighters")

    def start() -> None:
        settings.set(trained=True)
        manager().submit(key, partial(trace, plan), PLANS)

    if linked and settings["trained"] and manager().get(key) is None:
        start()
    task = manager().get(key)
    controls(
        settings,
        task,
        f"Train {plan.total:,} models" if task is None else "Again",
        start,
        names=("along_start", "along_stop"),
        help="Regularization paths, started as on the λ-path page.",
    )
    if task is None:
        st.caption(
            ":material/touch_app: No models of these data yet. After training, drag λ to update all matrices."
        )
        arena.draw_empty(settings["fighters"], data, "compare_no_models", _HEIGHT, "Not trained yet")
        return
    if not settings["along"]:
        settings.set(along=0.1 * plan.lambdas[-1])
    arena.draw(settings, plan, task, ("along", "watch"), _HEIGHT)


def _why_not_drawn(data: Dataset) -> str | None:
    """Return why a model of the data has no single matrix small enough to draw every cell."""
    d = data.X.shape[1]
    if len(data.outputs) > 1:
        return "This view shows one matrix per regularizer; these data have several outputs, one matrix each."
    if d > EXACT_FEATURES:
        return f"Matrices along λ are limited to {EXACT_FEATURES:,} features; these data have {d:,}."
    return None


def _plan(settings: Settings, d: int) -> PathPlan:
    names = settings["fighters"]
    base = replace(suggested(settings["dataset"], "fm"), start="informed", seed=settings["seed"])
    numbers = MOST_NUMBERS // (len(names) * d * base.rank)
    ends = range_to_empty(base, names)
    points = max(5, min(25, numbers, arena.most_frames(PathPlan(base, names, ends, "onwards"))))
    return PathPlan(base, names, strengths(*ends, points), "onwards")


# ----------------------------------------------------------------------------------------------------- page


MOST = 40
OFFERED = 300
# Metrics recorded for every run come first.
_CURVES = sorted(COLUMNS, key=lambda name: COLUMNS[name].function is not None)
_VIEWS = {"sparsity": "At equal sparsity", "strength": "Under one λ", "runs": "Runs"}
TABLE = (
    ParamSpec(
        "view",
        "choice",
        "auto",
        choices=("auto", *_VIEWS),
        help="Regularizers at equal sparsity (each at its own λ) or at the same λ; or stored runs.",
    ),
    Text("runs", limit=MOST * 16, help="Ids of the runs."),
    ParamSpec("curve", "choice", "objective", choices=tuple(_CURVES), help="Quantity on the vertical axis."),
    ParamSpec("x", "choice", "epoch", choices=("epoch", "seconds"), help="Seconds count solver time only."),
    # The regularizers, by their name in links: those with an exact operator; ridge is not sparse.
    Several("fighters", ("l1", "l21", "ti", "cs"), METHODS, help="Regularizers to compare."),
    ParamSpec(
        "target",
        "int",
        300,
        1,
        1_000_000,
        help="Approximate number of interactions per model. Default: the number of true pairs where known; "
        "otherwise a tenth of all pairs, at most one per ten rows.",
    ),
    ParamSpec(
        "seeds",
        "int",
        3,
        1,
        10,
        help="Repetitions of the search, each with another start and validation split. Differences smaller "
        "than the spread over seeds are noise.",
    ),
    ParamSpec("along", "float", 0.0, 0.0, 1e6, help="Drag the handle, or use the arrow keys."),
    arena.how("watch"),
    ParamSpec("trained", "bool", False, help="A link with trained=1 fits the models."),
)
_MENU = "fmviz:compare:menu"
# Groups of runs averaged over seeds, or single runs.
Groups = Sequence[Sequence[StoredRun]]


def render() -> None:
    """Draw the page."""
    settings = Settings(
        "compare",
        TABLE,
        parts=("sides", "duels", "duel", "duel_stop", "along_start", "along_stop", "curves"),
        expert=("x",),
    )
    linked = settings.read_url()
    settings.unread = frozenset(("dataset", "seed") if settings["view"] == "runs" else ())
    with shell.page("Compare", settings):
        shell.heading(
            settings,
            "Compare",
            "Compare regularizers at equal sparsity or at one λ, or stored runs side by side: differing "
            "settings, curves and trade-offs.",
            folded=True,
        )
        if (view := _view(settings)) == "runs":
            _runs(settings)
        elif shell.available(settings):
            (_draw_strengths if view == "strength" else _draw_equal_sparsity)(settings, linked)


def _view(settings: Settings) -> str:
    """Draw the choice of the comparison; a link with runs implies the view of runs."""
    offered = [name for name in _VIEWS if name != "sparsity" or settings.shows("duels", _VIEWS[name])]
    if settings["view"] not in offered:
        settings.set(view="runs" if settings["runs"] else offered[0])
    return str(
        widgets.control(
            settings,
            "view",
            st.segmented_control,
            "Compare",
            offered,
            format_func=_VIEWS.__getitem__,
            required=True,
            label_visibility="collapsed",
        )
    )


def _runs(settings: Settings) -> None:
    runs = store()
    picked = _pick(settings, runs)
    if len(picked) < 2:
        _empty(settings, runs, picked)
        return
    groups, names = seeds_folded(picked), COLUMNS if len({run.data_hash for run in picked}) == 1 else ()
    judged = [name for name in names if all(run.last.get(name) is not None for run in picked)]
    if judged and len(groups) > 1:
        table = pd.DataFrame(
            [(_name(*group), run.last[judged[0]], math.nan) for group in groups for run in group],
            columns=["label", "value", "refitted"],
        )
        st.markdown(plain(f"{error_words(table, COLUMNS[judged[0]])}."))
    differences = in_words(differing(groups, only=len(groups) > 1)).rename(
        columns={group[0].id: _name(*group) for group in groups}
    )
    if settings.shows("sides", "Differences"):
        _side_by_side(differences)
    _curves(settings, runs, groups)


def _pick(settings: Settings, runs: RunStore) -> list[StoredRun]:
    wanted = [name for name in settings["runs"].split(",") if name]
    known = {run.id: run for run in runs.runs(limit=OFFERED)}
    known |= {run.id: run for run in runs.get_many(wanted)}
    here = [name for name in wanted if name in known][:MOST]
    missing, there = len(set(wanted) - set(known)), len(set(wanted) & set(known))
    sentences = (
        f"{missing} of the {missing + there} runs of this link are not in this store"
        f"{'; the others are shown' * (there > 0)}." * bool(missing),
        f"The limit is {MOST} runs; only the first {MOST} of {there} are shown." * (there > MOST),
    )
    if any(sentences):
        st.warning(plain(" ".join(filter(None, sentences))), icon=":material/link_off:")
    if st.session_state.get(_MENU) != here:
        st.session_state[_MENU] = here
    if not settings.shows("runs", "Runs"):
        return [known[name] for name in here]
    with shell.settings_box("compare_runs_box", f"{len(here)} runs", folded=len(here) > 1):
        st.multiselect(
            "Runs",
            list(known),
            disabled=settings.locks("runs"),
            format_func=lambda name: _name(known[name]),
            key=_MENU,
            on_change=lambda: settings.set(runs=",".join(st.session_state[_MENU])),
            max_selections=MOST,
            placeholder="Choose two or more",
            help=f"Lists the newest {OFFERED}; select older runs on the Runs page.",
        )
    return [known[name] for name in here]


def _name(*group: StoredRun) -> str:
    title, seeds = title_of_run(group[0]), len({run.settings.get("seed") for run in group})
    if len(group) == 1:
        return f"{title} ({group[0].id[:4]})"
    return (
        f"{title.rpartition(' · seed')[0] or title} · {seeds} seeds"
        if seeds > 1
        else f"{title} · {len(group)} runs"
    )


def _empty(settings: Settings, runs: RunStore, picked: list[StoredRun]) -> None:
    newest = [run.id for run in runs.runs(limit=OFFERED) if run.last][:8]
    with st.container(border=True, key="compare_empty"):
        if len(newest) > 1:
            words = "A comparison needs two runs." if picked else "No runs chosen yet."
            st.markdown(f"{words} Choose runs above or on the *Runs* page, or compare the newest:")
            st.button(
                f"Compare the newest {len(newest)}",
                icon=navigation.COMPARE.icon,
                key="compare_newest",
                on_click=lambda: settings.set(runs=",".join(newest)),
            )
        else:
            st.markdown("The store has fewer than two runs with a result. Train some models first.")
            navigation.page_link(navigation.TRAIN)


def _objective(run: StoredRun) -> tuple[str, ...]:
    """Return the settings that an objective depends on, besides its data."""
    depends = ("model", "regularizer", "loss", "lambda_", "changes")
    return tuple(
        f"{name} {value}" for name, value in sorted(run.settings.items()) if name.startswith(depends)
    )


def _side_by_side(table: pd.DataFrame) -> None:
    st.subheader("Differences")
    if table.empty:
        st.caption("These runs have the same settings and results.")
        return
    st.dataframe(
        table,
        hide_index=True,
        key="compare_table",
        height=min(35 * (len(table) + 1) + 3, 600),
        column_config={"what": st.column_config.TextColumn("", pinned=True, width="medium")},
    )


def _curves(settings: Settings, runs: RunStore, groups: Groups) -> None:
    st.subheader("Curves")
    histories, least = [], dict[float, str]()
    for name, run in ((_name(*group), run) for group in groups for run in group):
        history = pd.DataFrame(trace := runs.trace(run.id))
        with contextlib.suppress(ValueError):  # Settings of another version.
            known = lowest(run.experiment, trace, run.data_hash, run.id)
            if trace and (value := known[-1].value) is not None:
                history["gap"] = gap(history, [(each.after, each.value) for each in known])
                words = known[-1].sentence.replace("this run", "one of these runs")
                if value not in least or "one of these" in words:
                    least[value] = words
        histories.append((name, str(run.settings.get("regularizer", "?")), history))
    offered = [name for name in _CURVES if any(name in h and len(h) for *_, h in histories)]
    if len({_objective(run) for group in groups for run in group}) > 1:
        # Objectives of different Ω or λ are different functions.
        offered = [name for name in offered if name != OBJECTIVE.name]
    if not offered:
        st.caption("None of these runs has completed an epoch.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        curve = widgets.choose_metric(settings, "curve", "Curve", offered, width=260)
        axes = {"epoch": "Epochs", "seconds": "Seconds"}
        widgets.param(settings, "x", "Against", labels=axes)
    # Objectives of different problems have no common axis.
    shown = CONVERGENCE if curve == OBJECTIVE else (curve,)
    label = " and ".join(metric.label for metric in shown)
    alt = f"{label} of {len(histories)} runs against {axes[settings['x']].lower()}."
    chart(figures.overlay(histories, *shown, x=settings["x"]), key="compare_curves", alt=alt)
    if curve == OBJECTIVE:
        several = f"F* is the lowest objective known for the problem of each run, of {len(least)} problems."
        st.caption(plain(several if len(least) > 1 else next(iter(least.values()), "")))
