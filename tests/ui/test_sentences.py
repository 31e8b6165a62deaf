"""What every page says as a reader finds it first."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest
from ui.driving import PAGES, page
from ui.sentences import FOLDER, Sentences, read, texts


@pytest.mark.parametrize("name", PAGES)
def test_every_page_says_what_its_file_holds(store, sentences, name):
    sentences(page(name), name)


def test_every_file_is_of_a_page():
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(PAGES)


def page_of_tests() -> None:
    import streamlit as st

    st.title("Numbers")
    st.markdown("It took **1.25 s**, or 12 ms; P1 has -3 of 1,024 entries,\n\n and λ = 1e-05.")
    st.caption("It took **2 s**, or 1 s; P1 has 3 of 9 entries, and λ = 4.")
    st.slider("Strength", 0, 3, help="In steps of 1.")
    if st.toggle("More"):
        with st.container():
            st.warning("A warning.")


def test_numbers_are_left_to_others(tmp_path, monkeypatch):
    monkeypatch.setattr("ui.sentences.FOLDER", tmp_path)
    app = AppTest.from_function(page_of_tests).run()
    spoken = "It took **#**, or #; P1 has # of # entries, and λ = #."
    assert texts(app) == ["Numbers", spoken, "Strength", "In steps of #.", "More"]
    taken = Sentences(update=True)
    taken(app, "page")
    app.toggle[0].set_value(True).run()
    taken(app, "page", "more")
    taken.write()
    assert read("page")["more"] == ["A warning."]
    Sentences(update=False)(app, "page", "more")
    with pytest.raises(AssertionError, match=r"\+A warning"):
        Sentences(update=False)(app, "page")
    with pytest.raises(AssertionError, match="no section 'less'"):
        Sentences(update=False)(app, "page", "less")
