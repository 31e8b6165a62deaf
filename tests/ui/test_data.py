"""The page of one's own data, driven by AppTest; the browser's part is in test_data_browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lab.hostile_files import FILES, Hostile
from streamlit.testing.v1 import AppTest
from ui.driving import address, choose, click, metrics, page, press, run_here, words

from fmviz.lab.catalog import dataset_spec
from fmviz.lab.datasets import DATASETS
from fmviz.lab.experiment import suggested
from fmviz.lab.files import data_folder
from fmviz.lab.uploads import library
from fmviz.ui import session_uploads

CASES = Path(__file__).parents[1] / "cases"
CSV = "age,town,smoker,y\n" + "".join(
    f"{20 + i % 40},{('Bonn', 'Kiel', 'Ulm')[i % 3]},{('no', 'yes')[i % 7 < 3]},{i % 11 / 3 - i % 5}\n"
    for i in range(120)
)

pytestmark = pytest.mark.faultless


@pytest.fixture(autouse=True)
def fresh(store):
    library._profiles._values.clear()
    library._sizes._values.clear()


def upload(app: AppTest, name: str, content: bytes) -> AppTest:
    (uploader,) = app.file_uploader
    uploader.set_value((name, content, "application/octet-stream"))
    return app.run()


def brought(content: str = CSV, name: str = "people.csv", **query: str) -> AppTest:
    return upload(page("data", **query), name, content.encode())


def kept() -> tuple[AppTest, str]:
    """Return the page with a file that was kept, and the name of the set."""
    app = press(brought(), "data_keep")
    return app, address(app)["dataset"]


def test_a_file_is_read_and_its_size_told():
    app = brought()
    assert int(metrics(app)["Features"]) > 20  # A curve of the ages beside the line.
    app = page("data", **{**address(app), "numbers": "line"})
    assert address(app)["target"] == "y"
    assert metrics(app)["Rows"] == "120"
    assert metrics(app)["Features"] == "5"
    assert metrics(app)["Pairs of features"] == "10"
    assert app.selectbox(key="data_delimiter").options[0] == "auto: comma"
    assert len(list(app.dataframe)) >= 2


def test_a_link_shows_the_same_in_another_session():
    app = choose(brought(), data_target="smoker", data_positive="no", data_rank=7)
    corrections = json.dumps({"age": ["ignored", "drop"]})
    link = {**address(app), "columns": corrections}
    other = page("data", **link)
    assert address(other) == {**link, "columns": corrections.replace(", ", ",").replace(": ", ":")}
    assert metrics(page("data", **link, numbers="line"))["Features"] == "4"
    assert "Binary target: **no**" in words(other)
    assert other.number_input(key="data_rank").value == 7


@pytest.mark.faultless(False)
def test_a_table_can_be_pasted():
    app = choose(page("data"), data_paste=CSV)
    press(app, "data_use_paste")
    assert not app.error
    assert metrics(app)["Rows"] == "120"
    press(app, "data_other")
    assert len(app.file_uploader) == 1
    assert address(app) == {}
    press(app, "data_use_paste")
    assert "is empty" in words(app)


@pytest.mark.faultless(False)
def test_a_link_with_wrong_values_is_answered(sentences):
    for bad in ("[1]", "no json", '{"age":["colour","drop"]}', '{"age":["number"]}', '{"age":3}'):
        app = page("data", columns=bad, target="y")
        assert not app.error
        assert (bad == '{"age":["number"]}') == (not app.warning), bad
    for file in ("0" * 32, "../../etc/passwd"):
        sentences(page("data", file=file), "data", "a file that is not here")


@pytest.mark.faultless(False)
def test_an_unreadable_file_can_be_read_otherwise(sentences):
    app = brought("a,b,y\n1,2,3\n1,2,3,4\n3,5,2\n2,2,9\n1,7,5\n", "ragged.csv")
    assert "saw 4" in words(app)
    choose(app, data_lines="fitting")
    sentences(app, "data", "lines of another length")
    assert metrics(app)["Rows"] == "4"


def files() -> set[str]:
    return {path.name for path in data_folder().glob("*")} if data_folder().exists() else set()


@pytest.mark.faultless(False)
def test_refused_files_are_not_kept():
    before = files()
    app = upload(page("data"), "picture.csv", b"\x89PNG and so on")
    assert "is a picture" in words(app)
    assert files() == before
    press(app, "data_other")
    upload(app, "people.csv", CSV.encode())
    assert len(files() - before) == 1


@pytest.mark.faultless(False)
def test_a_session_and_all_have_a_quota(monkeypatch, sentences):
    monkeypatch.setattr(session_uploads, "SESSION_BYTES", 2 * len(CSV))
    app = press(brought(), "data_other")
    upload(app, "more.csv", CSV.replace("Bonn", "Köln").encode())
    sentences(app, "data", "a session that has uploaded much")
    assert "this session can upload" in words(app)
    # What is here already takes no more room.
    upload(app, "people.csv", CSV.encode())
    assert metrics(app)["Rows"] == "120"
    monkeypatch.setenv("FMVIZ_UPLOADS", "1 kB")
    assert "of 1 kB for all visitors" in words(brought(CSV.replace("Bonn", "Köln")))


@pytest.mark.faultless(False)
def test_what_cannot_be_encoded_has_a_way_on(sentences):
    app = choose(brought(CSV, "people.csv", seed="5"), data_target="town")
    sentences(app, "data", "three classes")
    assert not app.button(key="data_read").disabled
    choose(app, data_positive="Kiel")
    assert "Binary target: **Kiel** in 40 rows" in words(app)
    choose(app, data_task="regression")
    sentences(app, "data", "no numbers to predict")
    assert app.button(key="data_read").disabled
    # Nothing else of the session is lost.
    assert app.number_input(key="shared_seed").value == 5


def test_a_set_is_in_this_sessions_menu_alone():
    app, name = kept()
    assert "was added to the data set menu" in words(app)
    assert f"data_delete_{name}" in {button.key for button in app.button}
    app.switch_page("pages/sweeps.py").run()
    assert app.selectbox(key="shared_dataset").value == name
    assert f"people.csv · {name[4:8]}" in app.selectbox(key="shared_dataset").options

    other = page("data")
    assert "My data sets" not in [header.value for header in other.subheader]
    other.switch_page("pages/sweeps.py").run()
    assert len(other.selectbox(key="shared_dataset").options) == len(DATASETS)
    linked = page("train", dataset=name)
    assert linked.selectbox(key="shared_dataset").value == name
    assert address(linked)["lambda_sparse"] == str(dataset_spec(name).suggested["lambda_sparse"])


def test_one_click_leads_to_the_pairs_in_words_and_a_link_finds_the_fit_again(
    store, sentences, monkeypatch, tmp_path
):
    app = choose(brought(seed="3"), data_rank=2, data_strengths="best")
    link = address(app)
    press(app, "data_read")
    assert app.title[0].value == "Interactions"
    (run,) = store.runs()
    assert address(app)["run"] == run.id
    assert "interactions of" in words(app)
    assert (run.settings["rank"], run.settings["seed"], run.settings["start"]) == (2, 3, "informed")
    assert suggested(run.experiment.dataset).lambda_sparse == run.settings["lambda_sparse"]
    # A server that still knows the fit shows it at once, another one makes it again.
    again = page("data", **link, search="1")
    sentences(again, "data", "strengths searched")
    assert store.count() == 1
    (program,) = (block.value for block in again.code if "first_fit(" in block.value)
    assert "sparsest" not in program
    printed = run_here(program, tmp_path)
    known = ("Chosen", "Of ")
    assert all(line in words(again) for line in printed.splitlines() if line.startswith(known))


@pytest.mark.faultless(False)
def test_only_who_brought_a_set_deletes_it_after_a_warning():
    app, name = kept()
    drawn = {button.key for button in page("data", dataset=name).run().button}
    assert drawn & {f"data_open_{name}", f"data_delete_{name}"} == {f"data_open_{name}"}
    assert "Deletes **people.csv** and its file" in words(app)
    press(app, f"data_delete_{name}")
    assert "was deleted" in words(app)
    assert "dataset" not in address(app)
    assert "Upload its file" in dataset_spec(name).unavailable()


def test_a_set_is_opened_as_it_was_made():
    app = choose(brought(columns='{"age":["word","drop"]}'), data_target="smoker", data_rare=4)
    press(app, "data_keep")
    name = address(app)["dataset"]
    recipe = library.find(name).recipe
    press(app, "data_other", f"data_open_{name}")
    press(app, "data_keep")
    assert address(app)["dataset"] == name
    assert recipe.rare == 4


def case(name: str) -> AppTest:
    return upload(page("data"), name, (CASES / name).read_bytes())


def test_what_is_ambiguous_is_asked_with_its_choices():
    app = case("28z_ambiguous.csv")
    assert "is read with the month first" in words(app)
    click(app, "Day first")
    assert address(app)["dates"] == "day"
    assert "Day first" not in [button.label for button in app.button]
    app = case("21_money_target.csv")
    beds = app.pills(key=f"data_words_{address(app)['file'][:8]}")
    assert (beds.options, beds.value) == (["beds"], [])
    beds.set_value(["beds"]).run()
    choose(app, data_numbers="line")
    query = address(app)
    assert (query["columns"], query["numbers"]) == ('{"beds":["word","impute"]}', "line")
    assert metrics(app)["Features"] == "7"
    app = press(case("33_no_header_iris.csv"), "data_ask_header_1")
    assert "Choose the column to predict" in words(app)
    assert app.button(key="data_read").disabled
    choose(app, data_target=app.selectbox(key="data_target").options[-1])
    assert (address(app)["header"], metrics(app)["Rows"]) == ("yes", "239")
    app = case("20_none_class.csv")
    click(app, "None is a missing value")
    assert address(app)["missing"] == "None"


def test_a_column_that_tells_the_target_is_left_out_by_one_click():
    rows = [f"{i % 13},{10 * (i % 17)},{i % 17}" for i in range(170)]
    app = brought("\n".join(["a,y_tenth,y", *rows]))
    assert "Column y_tenth alone determines the target: was it known before?" in words(app).replace("'", "")
    click(app, "Leave it out")
    assert json.loads(address(app)["columns"])["y_tenth"][0] == "ignored"
    assert "alone determines the target" not in words(app)


def test_the_example_keeps_dates_together_and_says_so():
    app = press(page("data"), "data_example")
    assert app.selectbox(key="data_group").value == address(app)["group"] == "dteday"
    assert "Rows with the same dteday stay on the same side of every split." in words(app)
    # The date is a feature where that was chosen.
    corrections = '{"hr":["word","impute"],"dteday":["word","impute"]}'
    chosen = page("data", **{**address(app), "columns": corrections, "numbers": "line"})
    assert metrics(chosen)["Features"] == f"{51 + 366}"
    assert "Rows with the same dteday stay" not in words(choose(app, data_group=""))


def test_a_libsvm_file_is_read():
    app = brought("1 0:0.5 3:2\n-1 2:1\n" * 20, "points.svm")
    assert (metrics(app)["Rows"], metrics(app)["Features"]) == ("40", "4")
    choose(app, data_positive="-1")
    assert r"Binary target: **\-1** in 20 rows" in words(app)


def test_words_of_others_are_shown_as_they_are():
    app = choose(
        brought(CSV.replace("Kiel", ":red[**Kiel**]")), data_target="town", data_positive=":red[**Kiel**]"
    )
    assert r"Binary target: **\:red\[\*\*Kiel\*\*\]**" in words(app)


@pytest.mark.slow
@pytest.mark.faultless(False)
def test_hostile_files_through_the_page():
    app = page("data", seed="42")
    for file in (*FILES, *(Hostile(path.name, path.read_bytes, False) for path in sorted(CASES.glob("*.*")))):
        upload(app, file.name, file.make())
        if "Choose the column to predict" in words(app):
            choose(app, data_target=app.selectbox(key="data_target").options[-1])
        errors = [error.value for error in app.error]
        assert not any("defect" in error or "Unexpected" in error for error in errors), (file.name, errors)
        # It is told what the file becomes, or why not, or what is to be decided first.
        assert bool(errors) != bool(app.metric), (file.name, errors)
        assert all(error.endswith((".", r"\.")) for error in errors if file.refused), (file.name, errors)
        assert app.number_input(key="shared_seed").value == 42
        if not app.file_uploader:
            press(app, "data_other")


def test_two_columns_with_words_for_missing_values_are_both_asked():
    rows = [f"{'None' if i % 2 else 'Gold'},{'NA' if i % 3 else 'EU'},{i % 17},{i % 23}" for i in range(200)]
    app = upload(page("data"), "asked.csv", "\n".join(["a,b,x,y", *rows]).encode())
    assert {"None is a missing value", "NA is a missing value"} <= {button.label for button in app.button}
