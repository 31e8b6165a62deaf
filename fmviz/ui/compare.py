"""The page Compare: regularizers at equal sparsity or under one λ, and runs side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st

from fmviz.engine.penalties import PENALTIES
from fmviz.engine.settings import ParamSpec
from fmviz.figures import comparison as figures
from fmviz.lab.background.task import TaskState, TaskView
from fmviz.lab.background.tasks import manager
from fmviz.lab.background.thinned import EXACT_FEATURES
from fmviz.lab.catalog import dataset_spec
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment, suggested
from fmviz.lab.interpretation.comparison import (
    Weights,
    first_between,
    stability,
    strongest_product,
)
from fmviz.lab.runner import load_dataset, truth_of
from fmviz.lab.runs.program import equal_sparsity_program
from fmviz.lab.runs.provenance import data_hash
from fmviz.lab.search.equal_sparsity import SearchFit, at_equal_sparsity, suggested_target
from fmviz.lab.search.strength_path import METHODS, MOST_NUMBERS, PathPlan, range_to_empty, strengths, trace
from fmviz.lab.store import RunStore, StoredRun, store
from fmviz.lab.store.table import (
    differing,
    in_words,
    seeds_folded,
    title_of_group,
    title_of_run,
)
from fmviz.metrics import COLUMNS, SUPPORT_F1
from fmviz.paths import accepted_range
from fmviz.report import page
from fmviz.stage.pictures import Picture, chart_of_figure
from fmviz.ui import arena, navigation, shell, widgets
from fmviz.ui.charts import chart
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings, Several, Text
from fmviz.ui.starts import START_LABELS, STARTS, follow_data
from fmviz.ui.watching import counted, outcome, watch

# ---------------------------------------------------------------------------------------- at equal sparsity


# Regularizers with an exact proximal operator; ridge is not sparse.
_OF_EQUAL_SPARSITY = (
    # Links call them by this name.
    Several("fighters", ("l1", "l21", "ti", "cs"), METHODS, help="The regularizers that are compared."),
    ParamSpec(
        "target",
        "int",
        300,
        1,
        1_000_000,
        help="About how many interactions each may use. It begins with the number of pairs that truly "
        "interact, where that is known; else with a tenth of all pairs, and at most one for ten rows.",
    ),
    STARTS,
)
_DUEL_HEIGHT = 300


def _draw_equal_sparsity(settings: Settings, linked: bool) -> None:
    """Draw the comparison at equal sparsity: its settings, progress and result."""
    spec = dataset_spec(settings["dataset"])
    follow_data(settings, linked, ("target",), partial(_load_target, settings))
    st.markdown(
        f"On **{plain(spec.title)}**: each regularizer at the λ that leaves it about as many interactions as "
        "the others."
    )
    experiment = _duel_experiment(settings)
    names, target = settings["fighters"], settings["target"]
    accept = accepted_range(target)
    key = f"duel:{experiment.digest}:{target}:{','.join(names)}"
    task = manager().get(key)
    active = task is not None and task.state.active
    line = f"{widgets.labels_of(names)} · {target:,} interactions"
    with shell.settings_box("compare_duel_box", line, folded=task is not None):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            widgets.regularizers(settings, "fighters", place=st.container(width="content"))
            widgets.param(settings, "target", "Interactions", place=st.container(width=150))
        widgets.param(settings, "starts", "Start", labels=START_LABELS)
    with st.container(horizontal=True, vertical_alignment="center"):
        widgets.action(
            settings,
            "duel",
            "Start the comparison" if task is None else "Again",
            icon=":material/balance:",
            shortcut="P",
            type="primary",
            disabled=active or not names,
            on_click=manager().submit,
            args=(key, partial(at_equal_sparsity, experiment, names, target, accept=accept)),
        )
        widgets.stop(settings, task, name="duel_stop")
        st.caption(_budget_words(settings, accept), width="content")
    dataset = load_dataset(experiment.dataset)
    if task is None and _one_matrix(dataset):
        arena.draw_empty(names, dataset, "compare_no_duel", _DUEL_HEIGHT, "Not searched for yet")
    if task is not None:
        draw = partial(_draw_duel, experiment, names, accept)
        watch(task, draw, _duel_words, lambda view: len(_ends(view)))
        if task.state.ended and task.view().items:
            source = widgets.linked(
                equal_sparsity_program(experiment, names, target, accept),
                f"{', '.join(names)} on {experiment.dataset} at {target:,} interactions, "
                f"seed {experiment.seed}",
                data={experiment.dataset.name: data_hash(dataset)},
            )
            widgets.python_block(source, "Searches again and prints the table above.")


def _load_target(settings: Settings, linked: bool) -> None:
    """Set the suggested number of the data; a link without a number has the original default."""
    if not linked:
        settings.set(target=suggested_target(load_dataset(settings["dataset"])))


def _budget_words(settings: Settings, accept: tuple[int, int]) -> str:
    dataset = load_dataset(settings["dataset"])
    low, high = accept
    words = f"Accepts {low:,} to {high:,} interactions" if low < high else f"Accepts {low:,} interactions"
    known = truth_of(dataset) is not None
    return f"{words}; {suggested_target(dataset):,} pairs truly interact." if known else f"{words}."


def _duel_experiment(settings: Settings) -> Experiment:
    values = suggested(settings["dataset"]).to_dict()
    values |= {"seed": settings["seed"], "model": "fm", "regularizer": "ti", "solver": "auto"}
    values["start"] = settings["starts"]
    values = {
        name: value for name, value in values.items() if not name.startswith(("model_", "regularizer_"))
    }
    return Experiment.from_dict(values | {"validation": values["validation"] or 0.2})


def _one_matrix(dataset: Dataset) -> bool:
    """Return whether a model of the data has a single matrix, small enough to draw every cell."""
    return dataset.X.shape[1] <= EXACT_FEATURES and len(dataset.outputs) < 2


def _duel_words(view: TaskView) -> tuple[str, float | None]:
    return counted(view, len(view.items), now=view.items[-1].message if view.items else "")


def _ends(view: TaskView) -> dict[str, SearchFit]:
    return {fit.experiment.regularizer.name: fit for fit in view.items if fit.parameters is not None}


def _draw_duel(experiment: Experiment, names: Sequence[str], accept: tuple[int, int], view: TaskView) -> None:
    fits: list[SearchFit] = list(view.items)
    outcome(view, len(fits))
    ends = _ends(view)
    last = {name: ends[name] for name in names if name in ends}
    if not last:
        return
    metric = next(m for m in COLUMNS.values() if any(m.name in fit.metrics for fit in last.values()))
    table = pd.DataFrame(
        {
            "regularizer": name,
            "label": PENALTIES[name].label,
            "nearest": fit.status == "nearest",
            "λ": fit.experiment.lambda_sparse,
            "interactions": fit.used_interactions,
            "Features": fit.used_features,
            "value": fit.metrics.get(metric.name, math.nan),
            "F1": fit.metrics.get(SUPPORT_F1.name, math.nan),
            "Fits": sum(
                tried.experiment.regularizer.name == name and tried.status != "nearest" for tried in fits
            ),
        }
        for name, fit in last.items()
    )
    dataset = load_dataset(experiment.dataset)
    drawable = _one_matrix(dataset)
    left, right = st.columns([5, 26] if drawable else [1, 1], gap="small")
    with left:
        st.markdown(f"**{metric.label}**")
        chart(
            figures.equal_sparsity(table, "value", metric.label),
            key="compare_duel_chart",
            alt=f"{metric.label} of {', '.join(table['label'])} at about the same number of interactions.",
        )
    pictures = {
        name: [arena.fitted(fit.parameters.P, "", dataset, compared=True)]
        for name, fit in last.items()
        if drawable and fit.parameters is not None
    }
    if drawable:
        with right:
            arena.draw_panels(pictures, dataset, "compare_duel_view", _DUEL_HEIGHT)
    if table["nearest"].any():
        st.caption(
            f"Hatched: {plain(', '.join(table['label'][table['nearest']]))} cannot use {accept[0]:,} to "
            f"{accept[1]:,} interactions here. The nearest number that was reached is shown."
        )
    number = st.column_config.NumberColumn
    st.dataframe(
        table,
        column_order=["label", "λ", "interactions", "Features", "value"]
        + ["F1"] * bool(table["F1"].notna().any())
        + ["Fits"],
        hide_index=True,
        key="compare_duel_table",
        column_config={
            "label": st.column_config.TextColumn("Regularizer", width="small"),
            "λ": number(format="%.5g", width="small"),
            "interactions": number("Interactions", format="localized", width="small"),
            "Features": number(format="localized", width="small"),
            "value": number(metric.label, format="%.5g", width="small"),
            "F1": number(SUPPORT_F1.label, format="%.3f", width="small"),
            "Fits": number(width="small"),
        },
    )
    if view.state is TaskState.FINISHED:
        notes = [
            *(
                f"{row['label']}: {row['interactions']:,} interactions at λ = {row['λ']:.4g}, {metric.label} "
                f"{row['value']:.4g}" + (f", F1 of pairs {row['F1']:.3f}." if row["F1"] == row["F1"] else ".")
                for row in table.to_dict("records")
            ),
            *(f"{PENALTIES[n].label}: {fit.message}" for n, fit in last.items() if fit.status == "nearest"),
        ]
        make = partial(arena.page, "Regularizers at equal sparsity", experiment, pictures, notes=notes)
        widgets.save_page("compare_duel_page", make, "equal-sparsity")
    for name, fit in last.items():
        if fit.status == "nearest":
            st.caption(f"**{PENALTIES[name].label}**: {plain(fit.message)}")


# ---------------------------------------------------------------------------------------------- under one λ


_OF_STRENGTHS = (
    ParamSpec("along", "float", 0.0, 0.0, 1e6, help="Drag the handle, or press the arrow keys."),
    arena.how("watch"),
    arena.why(METHODS),
    ParamSpec("trained", "bool", False, help="A link with trained=1 fits the models."),
)
_HEIGHT = 300


def _draw_strengths(settings: Settings, linked: bool) -> None:
    """Draw the fitted models along λ; a slider in the browser chooses the strength."""
    data = load_dataset(settings["dataset"])
    if (reason := _too_large(data)) is not None:
        st.info(plain(reason), icon=":material/grid_off:")
        return
    if not settings["fighters"]:
        widgets.regularizers(settings, "fighters")
        st.info("No regularizer is chosen. Choose at least one above.", icon=":material/touch_app:")
        return
    plan = _plan(settings, data.X.shape[1])
    key = f"path:{plan.digest}"
    line = f"{widgets.labels_of(settings['fighters'])} · {len(plan.lambdas)} values of λ"
    with shell.settings_box("compare_along_box", line, folded=manager().get(key) is not None):
        widgets.regularizers(settings, "fighters")

    def start() -> None:
        settings.set(trained=True)
        manager().submit(key, partial(trace, plan))

    if linked and settings["trained"] and manager().get(key) is None:
        start()
    task = manager().get(key)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        widgets.action(
            settings,
            "along_start",
            f"Train {plan.total:,} models" if task is None else "Again",
            icon=":material/play_arrow:",
            shortcut="P",
            type="primary",
            disabled=task is not None and task.state.active,
            on_click=start,
            help="Paths along λ, from the start that the λ-path takes.",
        )
        widgets.stop(settings, task, name="along_stop")
    if task is None:
        st.caption(
            ":material/touch_app: Not trained on these data yet. Once they are, drag λ: all pictures follow."
        )
        arena.draw_empty(settings["fighters"], data, "compare_no_models", _HEIGHT, "Not trained yet")
        return
    if not settings["along"]:
        settings.set(along=0.1 * plan.lambdas[-1])
    # Two features of different groups or, without known groups, the pair related most to y.
    groups = truth_of(data)
    pair = strongest_product(data) if groups is None else first_between(groups)
    arena.draw(settings, plan, task, ("along", "watch"), _HEIGHT, pair=pair)


def _too_large(data: Dataset) -> str | None:
    d = data.X.shape[1]
    if len(data.outputs) > 1:
        return (
            "Here there is one matrix for each regularizer; these data have several outputs, with one each."
        )
    if d > EXACT_FEATURES:
        return f"These data have {d:,} features; matrices along λ are drawn for up to {EXACT_FEATURES:,}."
    return None


def _plan(settings: Settings, d: int) -> PathPlan:
    names = settings["fighters"]
    base = replace(suggested(settings["dataset"], "fm"), start="informed", seed=settings["seed"])
    numbers = MOST_NUMBERS // (len(names) * d * base.rank)
    ends = range_to_empty(base, names)
    points = max(5, min(25, numbers, arena.most_frames(PathPlan(base, names, ends, "onwards"))))
    return PathPlan(base, names, strengths(*ends, points), "onwards")


# -------------------------------------------------------------------------------------------- pairs of runs


def _draw_pairs(runs: RunStore, groups: Groups) -> None:
    """Draw the stability of pairs over seeds."""
    repeated = [group for group in groups if len(group) > 1]
    st.subheader("Which pairs come back from seed to seed")
    if not repeated:
        st.caption(
            "No two of these runs differ in their seed alone. Train the same settings from other seeds "
            "(*Reseed*), or sweep over seeds."
        )
        return
    for group in repeated:
        _stability(runs, group)


@st.cache_data(max_entries=64, show_spinner=False)
def _weights(run: str, updated: float, _runs: RunStore) -> Weights | str:
    """Return the pair weights of a run, or why there are none."""
    del updated  # A run that has grown has others.
    stored, parameters = _runs.get(run), _runs.parameters(run)
    if parameters is None:
        return f"{title_of_run(stored)} has no parameters: it ended before its first epoch."
    try:
        return Weights.of(stored.experiment.model, parameters)
    except ValueError as error:
        return str(error)


def _comparable(runs: RunStore, group: Sequence[StoredRun]) -> list[Weights]:
    """Return the pair weights of runs; draw why they cannot be compared and return none."""
    results = [_weights(run.id, run.updated, runs) for run in group]
    reasons = {w: None for w in results if isinstance(w, str)}
    if len({run.data_hash for run in group}) > 1:
        reasons = {"These runs have different data: their pairs are not the same.": None}
    if reasons:
        st.caption(plain(" ".join(reasons)))
    return [] if reasons else [w for w in results if isinstance(w, Weights)]


def _names(run: StoredRun, d: int) -> Sequence[str]:
    """Return the names of the features, or their numbers, with a caption, if the data are missing."""
    try:
        experiment = run.experiment
        return load_dataset(experiment.dataset).feature_names
    except (ValueError, OSError) as error:
        st.caption(f"The features are numbered from 1, since their names cannot be read. {plain(error)}")
        return [str(j) for j in range(1, d + 1)]


def _stability(runs: RunStore, group: Sequence[StoredRun]) -> None:
    seeds = ", ".join(plain(run.settings.get("seed", 0)) for run in group)
    st.markdown(f"**{plain(title_of_group(group))}**: {seeds}")
    if not (weights := _comparable(runs, group)):
        return
    table = stability(weights, _names(group[0], len(weights[0].W)))
    if table.empty:
        st.caption("None of these runs uses a pair.")
        return
    st.dataframe(
        table,
        hide_index=True,
        key=f"compare_stability_{group[0].id}",
        height=260,
        column_config={
            "Selected in": st.column_config.ProgressColumn(
                format="percent",
                min_value=0,
                max_value=1,
                help="The share of the runs that use the pair.",
            ),
            "Mean weight": st.column_config.NumberColumn(
                format="%.4g", help="Over the runs that use the pair."
            ),
            "Same sign": st.column_config.NumberColumn(
                format="percent", help="The share of them whose weight has the sign of the mean."
            ),
        },
    )


# ----------------------------------------------------------------------------------------------------- page


MOST = 40
OFFERED = 300
# What is recorded of every run comes first.
_CURVES = sorted(COLUMNS, key=lambda name: COLUMNS[name].function is not None)
_VIEWS = {"sparsity": "At equal sparsity", "strength": "Under one λ", "runs": "Runs"}
TABLE = (
    ParamSpec(
        "view",
        "choice",
        "auto",
        choices=("auto", *_VIEWS),
        help="Regularizers, each at the λ that leaves about as many interactions, or all at the same λ; or "
        "runs that were made before.",
    ),
    Text("runs", limit=MOST * 16, help="The runs, by their ids."),
    ParamSpec("curve", "choice", "objective", choices=tuple(_CURVES), help="What the curves show."),
    ParamSpec("x", "choice", "epoch", choices=("epoch", "seconds"), help="Time spent in the solver only."),
    *_OF_EQUAL_SPARSITY,
    *_OF_STRENGTHS,
)
PARTS = ("sides", "pairs", "duels", "duel", "duel_stop", "along_start", "along_stop")
EXPERT = ("x", "pairs", "starts")
_TRADED = "The λ-path draws a metric against used interactions; the table of what differs has both."
_GONE = {
    "accept": "Numbers are near enough as in the paper: the binomial coefficients around the target.",
    "fold": "Runs that differ in their seed alone always stand as mean ± deviation.",
    "only": "The table holds what differs; Runs has all settings of a run.",
    "metric": _TRADED,
    "trade": _TRADED,
    **dict.fromkeys(("one", "other"), "Pairs are compared from seed to seed."),
    "shown": "Weights are drawn, beside those in truth.",
}
_MENU = "fmviz:compare:menu"
# Runs that are averaged over seeds, or single runs.
Groups = Sequence[Sequence[StoredRun]]


def render() -> None:
    """Draw the page."""
    settings = Settings(
        "compare", TABLE, parts=PARTS, expert=EXPERT, fresh={"starts": "informed"}, gone=_GONE
    )
    linked = settings.read_url()
    settings.unread = frozenset(("dataset", "seed") if settings["view"] == "runs" else ())
    with shell.page("Compare", settings):
        shell.heading(
            settings,
            "Compare",
            "Regularizers on the chosen data, with as many interactions each or under one λ; or runs side by "
            "side: what differs, their curves and trade-offs, and which pairs they agree on.",
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
    groups = seeds_folded(picked)
    if settings.shows("sides", "What differs"):
        _side_by_side(groups)
    _curves(settings, runs, groups)
    if settings.shows("pairs", "Pairs that recur"):
        _draw_pairs(runs, groups)


def _pick(settings: Settings, runs: RunStore) -> list[StoredRun]:
    wanted = [name for name in settings["runs"].split(",") if name]
    known = {run.id: run for run in runs.runs(limit=OFFERED)}
    known |= {run.id: run for run in runs.get_many(wanted)}
    here = [name for name in wanted if name in known][:MOST]
    _tell_missing(len(set(wanted)), len(set(wanted) - set(known)))
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
            placeholder="Pick two or more",
            help=f"The newest {OFFERED} are offered; older ones can be picked on the Runs page.",
        )
    return [known[name] for name in here]


def _tell_missing(wanted: int, missing: int) -> None:
    sentences = []
    if missing:
        others = "; the others are shown" if missing < wanted else ""
        sentences.append(f"{missing} of the {wanted} runs of this link are not in this store{others}.")
    if wanted - missing > MOST:
        sentences.append(
            f"{wanted - missing} runs are asked for; the first {MOST} are shown, which is the limit."
        )
    if sentences:
        st.warning(" ".join(sentences), icon=":material/link_off:")


def _name(*group: StoredRun) -> str:
    return title_of_group(group) if len(group) > 1 else f"{title_of_run(group[0])} ({group[0].id[:4]})"


def _empty(settings: Settings, runs: RunStore, picked: list[StoredRun]) -> None:
    newest = [run.id for run in runs.runs(limit=OFFERED) if run.last][:8]
    with st.container(border=True, key="compare_empty"):
        if len(newest) > 1:
            words = "One run alone has nothing to be compared with." if picked else "No runs are picked yet."
            st.markdown(f"{words} Pick some above, on the *Runs* page, or take the newest:")
            st.button(
                f"Compare the newest {len(newest)}",
                icon=navigation.COMPARE.icon,
                key="compare_newest",
                on_click=lambda: settings.set(runs=",".join(newest)),
            )
        else:
            st.markdown("There are fewer than two runs with a result in the store. Train some models first.")
            navigation.page_link(navigation.TRAIN)


def _side_by_side(groups: Groups) -> None:
    st.subheader("What differs")
    names = {group[0].id: _name(*group) for group in groups}
    table = in_words(differing(groups, only=len(groups) > 1)).rename(columns=names)
    if table.empty:
        st.caption("Nothing: the settings and the figures of these runs are the same.")
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
    histories = [
        (_name(*group), _regularizer(run), pd.DataFrame(runs.trace(run.id)))
        for group in groups
        for run in group
    ]
    offered = [name for name in _CURVES if any(name in h and len(h) for *_, h in histories)]
    if not offered:
        st.caption("None of these runs has completed an epoch.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        curve = widgets.choose_metric(settings, "curve", "Curve", offered, width=260)
        words = {"epoch": "Epochs", "seconds": "Seconds"}
        widgets.param(settings, "x", "Against", labels=words)
    figure = figures.overlay(histories, curve, settings["x"])
    alt = f"{curve.label} of {len(histories)} runs against {words[settings['x']].lower()}."
    chart(figure, key="compare_curves", alt=alt)
    picture = Picture(charts=[chart_of_figure(curve.label, figure)])
    widgets.save_page("compare_runs_page", lambda: page("Runs side by side", [alt], [("", picture)]), "runs")


def _regularizer(run: StoredRun) -> str:
    return str(run.settings.get("regularizer", "?"))
