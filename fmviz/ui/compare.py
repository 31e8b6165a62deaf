"""The page Compare: regularizers at equal sparsity or under one λ, and runs side by side."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from fmviz.engine.settings import ParamSpec
from fmviz.figures import comparison as figures
from fmviz.figures import palette
from fmviz.figures.training import CONVERGENCE, gap
from fmviz.lab.background.task import TaskState, TaskView
from fmviz.lab.background.tasks import manager
from fmviz.lab.background.thinned import EXACT_FEATURES
from fmviz.lab.catalog import dataset_spec
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment, suggested
from fmviz.lab.interpretation.comparison import (
    Weights,
    conclusion,
    error_words,
    first_between,
    leaders,
    range_words,
    stability,
    strongest_product,
    weights_of,
)
from fmviz.lab.runner import load_dataset, truth_of
from fmviz.lab.runs.program import equal_sparsity_program
from fmviz.lab.runs.provenance import data_hash
from fmviz.lab.search.equal_sparsity import SearchFit, at_equal_sparsity, ends_table, suggested_target
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
from fmviz.metrics import COLUMNS, OBJECTIVE, SUPPORT_F1, support_f1, used_pairs
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
    ParamSpec(
        "seeds",
        "int",
        1,
        1,
        10,
        help="How often all is searched again, with another start and other validation rows: what differs by "
        "less than the seeds do is chance.",
    ),
    STARTS,
)
_DUEL_HEIGHT = 260


def _draw_equal_sparsity(settings: Settings, linked: bool) -> None:
    """Draw the comparison at equal sparsity: its settings, progress and result."""
    spec = dataset_spec(settings["dataset"])
    follow_data(settings, linked, ("target",), partial(_load_target, settings))
    experiment = _duel_experiment(settings)
    names, target, seeds = (settings[name] for name in ("fighters", "target", "seeds"))
    accept, dataset = accepted_range(target), load_dataset(experiment.dataset)
    search = partial(at_equal_sparsity, experiment, names, target, accept=accept, seeds=seeds)
    key = f"duel:{experiment.digest}:{target}:{seeds}:{','.join(names)}"
    task = manager().get(key)
    number = plain(range_words(accept))
    line = f"{widgets.labels_of(names)} · {number} interactions" + f" · {int(seeds)} seeds" * (seeds > 1)
    with shell.settings_box("compare_duel_box", line, folded=task is not None):
        st.markdown(
            f"On **{plain(spec.title)}**: each regularizer at the λ that leaves it {number} interactions."
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            widgets.regularizers(settings, "fighters", place=st.container(width="content"))
            most, place = math.comb(dataset.X.shape[1], 2), st.container(width=150)
            widgets.param(settings, "target", "Interactions", style="number", most=most, place=place)
            widgets.param(settings, "seeds", "Seeds", style="number", place=st.container(width=110))
        widgets.param(settings, "starts", "Start", labels=START_LABELS)
    with (row := st.container(horizontal=True, vertical_alignment="center")):
        widgets.action(
            settings,
            "duel",
            "Start the comparison" if task is None else "Again",
            icon=":material/balance:",
            shortcut="P",
            type="primary",
            disabled=not names or (task is not None and task.state.active),
            on_click=manager().submit,
            args=(key, search),
        )
        widgets.stop(settings, task, name="duel_stop")
    if task is None:
        if _why_not_drawn(dataset) is None:
            arena.draw_empty(names, dataset, "compare_no_duel", _DUEL_HEIGHT, "Not searched for yet")
        return
    watch(
        task,
        partial(_draw_duel, experiment, names, target, accept, row),
        lambda view: counted(view, len(view.items), now=" ".join(map(fit_words, view.items[-1:]))),
        lambda view: sum(fit.parameters is not None for fit in view.items),
    )
    if task.state.ended and task.view().items:
        source = widgets.linked(
            equal_sparsity_program(experiment, names, target, accept),
            f"{', '.join(names)} on {experiment.dataset} at {target:,} interactions, seed {experiment.seed}",
            data={experiment.dataset.name: data_hash(dataset)},
        )
        widgets.python_block(source, "Searches again with the first seed and prints its rows above.")


def _load_target(settings: Settings, linked: bool) -> None:
    """Set the suggested number of the data; a link without a number has the original default."""
    if not linked:
        settings.set(target=suggested_target(load_dataset(settings["dataset"])))


def _duel_experiment(settings: Settings) -> Experiment:
    given = suggested(settings["dataset"]).to_dict()
    own = {
        **{"seed": settings["seed"], "model": "fm", "regularizer": "ti", "solver": "auto"},
        **{"start": settings["starts"], "validation": given["validation"] or 0.2},
    }
    kept = {name: value for name, value in given.items() if not name.startswith(("model_", "regularizer_"))}
    return Experiment.from_dict(kept | own)


def _draw_duel(
    experiment: Experiment,
    names: Sequence[str],
    target: int,
    accept: tuple[int, int],
    row: DeltaGenerator,
    view: TaskView,
) -> None:
    fits: list[SearchFit] = list(view.items)
    with row:
        outcome(view, len(fits))
    metric = next((m for m in COLUMNS.values() if any(m.name in fit.metrics for fit in fits)), None)
    if metric is None:
        return
    table, dataset = ends_table(fits, names, accept, metric), load_dataset(experiment.dataset)
    drawable, reference = _why_not_drawn(dataset) is None, ""
    best = leaders(table[~table["nearest"]], "value", metric)
    if drawable and best and truth_of(dataset) is None:
        reference = best[0]
        own = {
            fit.experiment.seed: used_pairs(fit.parameters)
            for fit in table["fit"][table["label"] == reference]
        }
        table["F1"] = [support_f1(own[fit.experiment.seed], fit.parameters) for fit in table["fit"]]
    complete = len(table) == len(names) * table["seed"].nunique()
    said = conclusion(table, metric, target, accept, reference) if complete else ""
    left, right = st.columns([3, 2], gap="medium")
    left.markdown(plain(said))
    if drawable:
        left.caption("The matrices below are of the first seed.")
    with right:
        st.markdown(f"**{metric.label}** :small[○ fitted · ● refitted, λ = 0 · ✕ off target]")
        chart(
            figures.equal_sparsity(table, metric, 34 + 27 * len(names)),
            key="compare_duel_chart",
            alt=f"{metric.label} as fitted and refitted without λ. {said}",
        )
    pictures = {}
    if drawable:
        first = table["fit"][table["seed"] == experiment.seed]
        pictures = {f.experiment.regularizer.name: [arena.fitted(f.parameters.P, "", dataset)] for f in first}
        arena.draw_panels(pictures, dataset, "compare_duel_view", _DUEL_HEIGHT)
    number = st.column_config.NumberColumn
    st.dataframe(
        table.drop(columns="fit"),
        column_order=["label"]
        + ["seed"] * (table["seed"].nunique() > 1)
        + ["λ", "interactions", "Features", "value", "refitted"]
        + ["F1"] * bool(table["F1"].notna().any())
        + ["Fits"],
        hide_index=True,
        key="compare_duel_table",
        column_config={
            "label": st.column_config.TextColumn("Regularizer", width="small"),
            "seed": number("Seed", width="small"),
            "λ": number(format="%.5g", width="small"),
            "interactions": number("Interactions", format="localized", width="small"),
            "Features": number(format="localized", width="small"),
            "value": number(metric.label, format="%.5g", width="small"),
            "refitted": number("Refitted", format="%.5g", width="small"),
            "F1": number(f"F1 to {reference}" if reference else SUPPORT_F1.label, format="%.3f"),
            "Fits": number(width="small"),
        },
    )
    if view.state is TaskState.FINISHED:
        notes = [
            said,
            *(
                f"{row['label']}: {row['interactions']:,} interactions at λ = "
                f"{row['λ']:.4g}, {metric.label} {row['value']:.4g}, refitted {row['refitted']:.4g}."
                for row in table[table["seed"] == experiment.seed].to_dict("records")
            ),
        ]
        make = partial(arena.page, "Regularizers at equal sparsity", experiment, pictures, notes=notes)
        widgets.save_page("compare_duel_page", make, "equal-sparsity")


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
    if (reason := _why_not_drawn(data)) is not None:
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


def _why_not_drawn(data: Dataset) -> str | None:
    """Return why a model of the data has no single matrix, small enough to draw every cell."""
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
    st.subheader("Which pairs come back from seed to seed")
    for group in (repeated := [group for group in groups if len(group) > 1]):
        _stability(runs, group)
    if not repeated:
        st.caption(
            "No two of these runs differ in their seed alone. Train the same settings from other seeds "
            "(*Reseed*), or sweep over seeds."
        )


@st.cache_resource(max_entries=64, show_spinner=False)
def _weights(run: str, updated: float, _runs: RunStore) -> Weights | str:
    """Return the pair weights of a run, or why there are none; `updated` is part of the cache key."""
    stored, parameters = _runs.get(run), _runs.parameters(run)
    if parameters is None:
        return f"{title_of_run(stored)} has no parameters: it ended before its first epoch."
    try:
        return weights_of(stored.experiment.model, parameters)
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
    return [] if reasons else [w for w in results if not isinstance(w, str)]


def _names(run: StoredRun, d: int) -> Sequence[str]:
    """Return the names of the features, or their numbers, with a caption, if the data are missing."""
    try:
        return load_dataset(run.experiment.dataset).feature_names
    except (ValueError, OSError) as error:
        st.caption(f"The features are numbered from 1, since their names cannot be read. {plain(error)}")
        return [str(j) for j in range(1, d + 1)]


def _stability(runs: RunStore, group: Sequence[StoredRun]) -> None:
    seeds = ", ".join(plain(run.settings.get("seed", 0)) for run in group)
    st.markdown(f"**{plain(_name(*group))}**: {seeds}")
    if not (weights := _comparable(runs, group)):
        return
    table = stability(weights, _names(group[0], len(weights[0][0])))
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
PARTS = ("sides", "pairs", "duels", "duel", "duel_stop", "along_start", "along_stop", "curves")
EXPERT = ("x", "pairs", "starts")
_MENU = "fmviz:compare:menu"
# Runs that are averaged over seeds, or single runs.
Groups = Sequence[Sequence[StoredRun]]


def render() -> None:
    """Draw the page."""
    settings = Settings(
        "compare", TABLE, parts=PARTS, expert=EXPERT, fresh={"starts": "informed", "seeds": 3}
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
    groups, names = seeds_folded(picked), COLUMNS if len({run.data_hash for run in picked}) == 1 else ()
    judged = [name for name in names if all(run.last.get(name) is not None for run in picked)]
    if judged and len(groups) > 1:
        rows = [(_name(*group), run.last[judged[0]], math.nan) for group in groups for run in group]
        table = pd.DataFrame(rows, columns=["label", "value", "refitted"])
        st.markdown(plain(f"{error_words(table, COLUMNS[judged[0]])}."))
    columns = {group[0].id: _name(*group) for group in groups}
    differences = in_words(differing(groups, only=len(groups) > 1)).rename(columns=columns)
    if settings.shows("sides", "What differs"):
        _side_by_side(differences)
    _curves(settings, runs, groups, differences)
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
    others, there = "; the others are shown" * (missing < wanted), wanted - missing
    sentences = (
        f"{missing} of the {wanted} runs of this link are not in this store{others}." * bool(missing),
        f"{there} runs are asked for; the first {MOST} are shown, which is the limit." * (there > MOST),
    )
    if any(sentences):
        st.warning(plain(" ".join(filter(None, sentences))), icon=":material/link_off:")


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


def _side_by_side(table: pd.DataFrame) -> None:
    st.subheader("What differs")
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


def _curves(settings: Settings, runs: RunStore, groups: Groups, differences: pd.DataFrame) -> None:
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
    source = next(iter(least.values()), "")
    if len(least) > 1:
        source = f"F* is the lowest objective known for the problem of each run, of {len(least)} problems."
    if curve == OBJECTIVE:
        st.caption(plain(source))
    # The saved page has no dashes that could tell runs of one regularizer apart.
    colors, charts = palette.method_colors([name for name, *_ in histories]), []
    for metric in shown:
        figure = figures.overlay(histories, metric, x=settings["x"])
        figure.for_each_trace(lambda trace: trace.update(line={"color": colors[trace.name], "dash": None}))
        charts.append(chart_of_figure(metric.label, figure))
    tables = [("What differs", differences.to_dict("records"))]
    make = partial(page, "Runs side by side", [alt], [("", Picture(charts=charts))], tables=tables)
    widgets.save_page("compare_runs_page", make, "runs")
