"""What every page says as a reader finds it first."""

from __future__ import annotations

import pytest
from ui.driving import PAGES, page
from ui.sentences import FOLDER


@pytest.mark.parametrize("name", PAGES)
def test_every_page_says_what_its_file_holds(store, sentences, name):
    sentences(page(name), name)


def test_every_file_is_of_a_page():
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(PAGES)
