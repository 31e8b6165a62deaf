"""What every page says as a reader finds it first, and that About lists every key."""

from __future__ import annotations

import re

import pytest
from ui.driving import PAGES, ROOT, page
from ui.sentences import FOLDER

from fmviz.ui.about import KEYS


@pytest.mark.parametrize("name", PAGES)
def test_every_page_says_what_its_file_holds(store, sentences, name):
    sentences(page(name), name)


def test_every_file_is_of_a_page():
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(PAGES)


def test_every_key_of_a_button_is_told():
    message = {key for keys in KEYS.values() for key, _ in keys}
    for path in (ROOT / "fmviz" / "ui").rglob("*.py"):
        for key in re.findall(r'shortcut="([^"]+)"', path.read_text(encoding="utf-8")):
            assert key in message, f"{key} of {path.name} is not on the About page"
