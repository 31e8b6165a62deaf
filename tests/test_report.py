"""The HTML report of a fit."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json
import re
from email.message import Message
from html.parser import HTMLParser
from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from inline_executor import InlineExecutor
from sklearn.pipeline import make_pipeline
from ui.driving import decode

import fmviz
from fmviz import report
from fmviz.engine.interactions.weights import pairs_of
from fmviz.engine.models import MODELS
from fmviz.engine.problem import Problem
from fmviz.lab.background.tasks import TaskManager
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation.attributes import Attributes
from fmviz.lab.interpretation.reading import table_of_pairs
from fmviz.lab.interpretation.wording import Wording
from fmviz.lab.runs.program import with_header
from fmviz.lab.store import store as process_store
from fmviz.lab.store.table import title_of_settings
from fmviz.paths import iterate_path
from fmviz.report import SHOWN_PAIRS, Outcome, html, of_stored
from fmviz.stage import FactorFrame, Panel, module
from fmviz.stage.pictures import Picture
from fmviz.tables.scaling import Scaling
from fmviz.typography import cell

SMALL = {"rank": 3, "max_epochs": 20, "tol": 0.0, "validation": 0.2}
HOSTILE = (
    "<script>alert(1)</script>",
    '" onmouseover="alert(2)',
    "=cmd|' /C calc'!A0",
    "</table>&amp;",
    "a\nb",
)


class Strict(HTMLParser):
    """Collects tags, and texts beside them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def of_view(view, program="") -> Outcome:
    runs = process_store()
    return of_stored(runs.get(view.id), runs, program)


@pytest.fixture(autouse=True)
def project(monkeypatch):
    """The metadata of the installed package, without addresses."""
    monkeypatch.setattr(report, "metadata", Mock(return_value=Message()))
    return report.metadata("fmviz")


@pytest.fixture
def view():
    manager = TaskManager(InlineExecutor(), open_store=process_store)
    return manager.start(Experiment(**SMALL, dataset="balance_scale", lambda_sparse=0.001)).view()


def test_everything_is_in_it(view):
    page = html(of_view(view, with_header("print(1)", "what", link="http://x/train?seed=1")))
    parsed = Strict(page)
    assert re.findall(r"<h2>(.*?)</h2>", page) == [
        "The interactions",
        "The model",
        "The strongest interactions",
        "The strongest linear weights",
        "Data",
        "Settings",
        "Program",
    ]
    assert view.last["used_interactions"] == 0
    assert "The model uses no pairs: the regularizer has set all weights to zero." in parsed.text
    assert f"{view.last['objective']:.5g}" in parsed.text
    assert "http://x/train?seed=1" in parsed.text
    assert [tag for tag, _ in parsed.tags].count("script") == 2  # the picture as JSON, and what draws it
    assert all(
        not value.startswith("http")
        for _, at in parsed.tags
        for key in ("src", "href")
        if (value := at.get(key))
    )
    assert len(page) < 300_000


def test_a_page_ends_with_its_origin_and_a_stated_address(project, monkeypatch):
    feet = [report.page("T", [])]
    for url in ("Documentation, https://docs.example", "Homepage, https://example.org/fmviz"):
        project["Project-URL"] = url
        feet.append(report.page("T", []))
    monkeypatch.setattr(report, "metadata", Mock(side_effect=PackageNotFoundError))
    feet = [re.search("<footer>Saved by (.*?), which", text)[1] for text in [*feet, report.page("T", [])]]
    plain = f"fmviz {fmviz.__version__}"
    assert feet == [plain, plain, f'<a href="https://example.org/fmviz">{plain}</a>', plain]


def test_settings_and_long_tables_are_folded_and_pages_are_reproducible(view):
    page = html(outcome := of_view(view, "print(1)"))
    folded = re.findall(r"<details><summary><h2>(.*?)</h2></summary>", page)
    assert folded == ["The strongest linear weights", "Data", "Settings", "Program"]
    assert html(outcome) == page
    rows = [{"row": f"r{at}"} for at in range(30)]
    shown, more = report.page("T", [], tables=[("Short", rows[:12]), ("Long", rows)]).split(
        "<details><summary>20 more rows</summary>"
    )
    assert (shown.count("<details"), shown.count("<td>r9</td>"), more.count("<td>r10</td>")) == (0, 2, 1)


def test_the_truth_has_its_groups_and_a_picture_says_how_to_read_it():
    experiment = Experiment(**SMALL, dataset="planted_interactions", lambda_sparse=0.1)
    view = TaskManager(InlineExecutor(), open_store=process_store).start(experiment).view()
    ((header, _),) = pictures_in(html(of_view(view)))
    learned, truth = header["panels"]
    assert truth["blocks"] == [[f"group {g + 1}", 10 * g, 10] for g in range(8)] + [["noise", 80, 20]]
    assert (truth["frames"][0]["caption"], learned["blocks"]) == ("360 true pairs", [])
    assert re.search("orange is positive, blue is negative, and blank is exactly zero.*Click", header["ask"])


def test_hostile_names_stay_text(view):
    names = (HOSTILE + tuple(view.dataset.feature_names))[: view.dataset.X.shape[1]]
    dataset = dataclasses.replace(view.dataset, feature_names=names, target_name=HOSTILE[0], name=HOSTILE[1])
    outcome = dataclasses.replace(
        of_view(view, with_header(HOSTILE[3], HOSTILE[0])), dataset=dataset, title=HOSTILE[0], notes=HOSTILE
    )
    page = html(outcome)
    parsed = Strict(page)
    assert not {"iframe", "object", "a"} & {tag for tag, _ in parsed.tags}
    kinds = [attributes["type"] for tag, attributes in parsed.tags if tag == "script"]
    assert kinds == ["application/json", "module"]
    assert not [key for _, attributes in parsed.tags for key in attributes if key.startswith("on")]
    assert all(name in parsed.text for name in HOSTILE)
    assert "default-src 'none'" in page


@pytest.mark.parametrize("model", tuple(MODELS))
def test_every_model_has_a_report(model):
    settings = {**SMALL, "dataset": "balance_scale", "model": model, "max_epochs": 3}
    experiment = Experiment(**settings, lambda_sparse=0.001)
    view = TaskManager(InlineExecutor(), open_store=process_store).start(experiment.applicable()).view()
    assert f"{MODELS[model].label}, " in html(of_view(view))


def test_a_stored_run_and_one_without_data(store):
    manager = TaskManager(InlineExecutor(), open_store=lambda: store)
    stored = store.get(manager.start(Experiment(**SMALL, dataset="balance_scale")).id)
    page = html(of_stored(stored, store))
    assert stored.message in page
    assert "payload" in page
    other = dataclasses.replace(stored, data_hash="0" * 16)
    assert "The data have changed since" in html(of_stored(other, store))


def test_a_run_that_never_began_has_its_settings(view):
    page = html(
        dataclasses.replace(of_view(view), history=(), parameters=None, dataset=None, message="It failed.")
    )
    assert "It failed." in page
    assert re.findall(r"<h2>(.*?)</h2>", page) == ["The model", "Data", "Settings"]


def test_a_machine_of_higher_order_tells_of_pairs_and_of_triples():
    experiment = Experiment(
        **SMALL,
        dataset="planted_triples",
        model="hofm",
        regularizer="omega_ti",
        lambda_sparse=0.001,
        init_scale=1.0,
    )
    view = TaskManager(InlineExecutor(), open_store=process_store).start(experiment).view()
    page = html(of_view(view))
    counts = dict(
        re.findall(
            r"<h2>(The strongest interactions[^<]*)</h2>\n(?:<p><b>.*?</p>)?<p>([\d,]+) used",
            page,
        )
    )
    last = view.last
    assert counts == {
        "The strongest interactions": f"{last['used_interactions_2']:,}",
        "The strongest interactions of 3 features": f"{last['used_interactions_3']:,}",
    }
    assert "feature 3" in Strict(page).text


def test_a_report_has_the_changes_and_the_strengths_of_the_last_epoch():
    changes = [(5, "lambda_sparse", 0.25), (9, "lambda_p", 0.125), (20, "lambda_sparse", 0.75)]
    settings = {**SMALL, "lambda_sparse": 0.5, "changes": changes}
    experiment = Experiment(**settings, dataset="balance_scale")
    view = TaskManager(InlineExecutor(), open_store=process_store).start(experiment).view()
    assert view.epoch == 20
    page = html(of_view(view))
    parsed = Strict(page)
    # What is due after the last epoch has changed nothing.
    assert "Changes during the run: λ = 0.25 after epoch 5; λₚ = 0.125 after epoch 9. " in parsed.text
    assert "<h1>Balance scale: factorization machine with TI at λ = 0.5 → 0.25, 20 epochs</h1>" in page
    assert "λ = 0.25, λ_p = 0.125, λ_w = 0.0001." in parsed.text
    assert "<td>Changes of λ</td><td>λ = 0.25 after epoch 5; λₚ = 0.125 after epoch 9; λ = 0.75 after" in page


@pytest.mark.parametrize("logarithm", [False, True])
def test_a_report_is_in_the_target_s_own_unit_and_in_words(logarithm):
    experiment = Experiment(
        **SMALL, dataset="planted_interactions", lambda_p=1e-3, lambda_sparse=1e-3, init_scale=0.3
    )
    view = TaskManager(InlineExecutor(), open_store=process_store).start(experiment).view()
    scaling = Scaling(200.0, 50.0, deviations=True, logarithm=logarithm)
    dataset = dataclasses.replace(view.dataset, target_name="rent", target_scaling=scaling)
    page = html(dataclasses.replace(of_view(view), dataset=dataset))
    text = Strict(page).text
    unit = "log rent" if logarithm else "rent"
    for name in ("training", "validation"):
        error = view.last[f"{'train' if name == 'training' else name}_rmse"]
        assert f'<dt>RMSE, {name} (in {unit})</dt><dd class="">{50 * error:.5g}</dd>' in page
    assert f"The target is fitted as ({unit} − 200)/50; the objective refers to it; errors, weights" in text
    # The sentences and weights of the page Interactions.
    ranked = pairs_of(view.machine, view.parameters).ranked(SHOWN_PAIRS)
    wording = Wording(Attributes(dataset), experiment.loss.name)
    table = table_of_pairs(ranked.sets, ranked.weight, dataset, wording)
    assert f"The strongest pair. {table['sentence'][0]}" in text
    assert all(f"<td>{words}</td>" in page for words in table["sentence"])
    for weight in ranked.weight:
        assert f"<td class=n>{cell(50 * weight)}</td>" in page
    assert f"<td class=n>{50 * max(view.parameters.w, key=abs):.5g}</td>" in page
    assert f"Bias {200 + 50 * view.parameters.intercept:.5g}." in text


# ------------------------------------------------------------------------------------------ pages of others


def pictures_in(page: str) -> list[tuple[dict, bytes]]:
    """Return the header and the numbers of every picture of a page."""
    texts = re.findall(r'<script type="application/json" class="fmviz">(.*?)</script>', page)
    return [decode(gzip.decompress(base64.b64decode(json.loads(text)["payload"]))) for text in texts]


def test_the_module_has_no_imports_and_a_fallback_for_every_colour():
    assert not re.search(r"^\s*import\b|import\(|fetch\(|XMLHttpRequest|</script", module(), re.MULTILINE)
    assert module().count("export default") == 1
    assert not re.findall(r"var\(--st-[\w-]+\)", module())


def test_a_page_is_small_keeps_exact_zeros_and_says_what_it_leaves_out():
    P = np.random.default_rng(0).normal(size=(300, 30)) * (np.arange(300)[:, None] % 5 > 0)
    P[1::5, 5:] = 0.0
    kept_rows = np.sort(np.argsort(-np.square(P).sum(axis=1), kind="stable")[:200])
    frames = [FactorFrame(P * (t + 1), f"epoch {t}") for t in range(100)]
    picture = Picture([Panel("Learned", frames, color="#123456")], [f"</script>{j}" for j in range(300)])
    page = report.page("T", ["<b>"], [("", picture)])
    assert len(page.encode()) <= report.MOST_BYTES
    assert "&lt;b&gt;" in page
    assert not re.search(r"(src|href)=", page)
    assert "Matrices show the 200 strongest of 240 used features; the data have 300." in page
    ((header, body),) = pictures_in(page)
    assert header["names"] == [f"</script>{j}" for j in kept_rows]
    kept = header["panels"][0]["frames"]
    assert 1 < len(kept) <= 60
    assert f"Shows {len(kept)} of 100 epochs" in page
    for frame in kept:
        values = np.frombuffer(body, np.float32, 6_000, frame["at"]).reshape(200, 30)
        np.testing.assert_array_equal(values == 0, P[kept_rows] == 0)


X, Y, _ = fmviz.datasets.make_sparse_interactions(60, d_true=4, b=2, d_noise=2, random_state=0)


def test_machines_paths_and_experiments_are_saved(tmp_path):
    machine = fmviz.FactorizationMachineRegressor(rank=2, lambda_p=0.1, random_state=0).fit(
        pd.DataFrame(X, columns=list("abcdef")), Y
    )
    path = fmviz.regularization_path(X, Y, [0.1, 0.5, 2.0], rank=2, lambda_p=0.1, random_state=0)
    experiment = Experiment(**SMALL, dataset="balance_scale", lambda_sparse=0.001)
    titles = (
        f"FactorizationMachineRegressor, TI, λ = {machine.lambda_sparse_:.3g}: 6 features",
        *["Factorization machine along λ: 6 features, 3 fits"] * 2,
        "Balance scale: factorization machine with TI at λ = 0.001, 20 epochs",
    )
    for thing, frames, said, title in zip(
        (machine, path.copy(), path.points, experiment),
        (1, 3, 3, 21),
        ("to f</td>", "The fits", "The fits", "Settings"),
        titles,
        strict=True,
    ):
        page = fmviz.save(thing, tmp_path / "page.html").read_text(encoding="utf-8")
        assert (f"<title>{title} · fmviz</title>" in page, f"<h1>{title}</h1>" in page) == (True, True)
        ((header, _),) = pictures_in(page)
        assert len(header["panels"][0]["frames"]) == frames
        assert said in page
    with pytest.raises(TypeError, match="neither a fitted machine, a path nor an experiment"):
        fmviz.save(path[:2], tmp_path / "part.html")
    with pytest.raises(FileNotFoundError, match=r"create .*none first"):
        fmviz.save(experiment, tmp_path / "none" / "page.html")
    machine = fmviz.FactorizationMachineClassifier(
        rank=2, max_iter=2, tol=0, lambda_sparse=0.0, random_state=0
    ).fit(pd.DataFrame(np.random.default_rng(0).normal(size=(40, 300))).add_prefix("c"), np.arange(40) % 8)
    page = fmviz.save(make_pipeline(machine), tmp_path / "page.html").read_text(encoding="utf-8")
    assert "44,850 interactions, 19,900 of them among the 200 displayed features" in str(
        pictures_in(page)[0][0]
    )
    assert "Only the first 6 of 8 outputs are drawn. Matrices show the 200 strongest of 300 used" in page


def test_a_notebook_shows_what_is_fitted_or_says_what_it_needs():
    points = [*iterate_path(Problem.build(X, Y), [0.5], random_state=0)]
    if find_spec("anywidget") is None:
        with pytest.raises(ImportError, match=r'pip install "fmviz\[notebook\]"'):
            fmviz.show(points)
    else:
        stage = decode(fmviz.show(points).payload)[0]["stage"]
        assert stage["title"] == "Factorization machine along λ: 6 features, 1 fits"


def test_runs_are_called_by_their_data_and_their_last_strength():
    settings = {"dataset": "monks1", "regularizer": "ti", "lambda_sparse": 0.5, "seed": 3}
    assert title_of_settings(settings, 10) == "MONK's problem 1 · TI · λ 0.5 · seed 3"
    changed = {**settings, "changes": "4:lambda_sparse:0.25,10:lambda_sparse:2"}
    assert title_of_settings(changed, 10) == "MONK's problem 1 · TI · λ 0.5 → 0.25 · seed 3"
    assert title_of_settings(changed, 4) == title_of_settings(settings, 4)
    assert title_of_settings(changed | {"model": "hofm"}, 10, heading=True) == (
        "MONK's problem 1: factorization machine, higher order with TI at λ = 0.5 → 0.25, 10 epochs"
    )
    assert title_of_settings({**settings, "changes": "of another version"}, 9).endswith("λ 0.5 · seed 3")
