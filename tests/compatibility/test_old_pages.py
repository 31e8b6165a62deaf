"""Links to pages of commit bcea1f3 open the same state with the same numbers."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from compatibility import pages, present
from compatibility.comparing import same_printed
from ui.driving import run_here

LINKS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "pages.json").read_text(encoding="utf-8")
)


NEW = {"run", "level", "view"}
# The start page's operators gave way to trained models.
GONE = defaultdict(set, {"": {"log2lambda"}})


@pytest.mark.sample(4)
@pytest.mark.parametrize("link", LINKS, ids=lambda link: f"{link['page']}?{'&'.join(link['query'])}"[:70])
def test_a_link_opens_the_same_page(old, link, tmp_path):
    with present.serving(old):
        app = pages.opened(link["page"], link["query"])
    # A run that begins on the page has an id that nobody knows before, and a link to what Simple folds away
    # opens it in Expert.
    there = {
        name: value for name, value in pages.address(app).items() if name not in NEW - link["query"].keys()
    }
    assert there == {name: value for name, value in link["address"].items() if name not in GONE[link["page"]]}
    assert not pages.lacks(app, link["shows"])
    if link["printed"]:
        if not (codes := pages.programs(app)):
            # Some are Expert's.
            with present.serving(old):
                codes = pages.programs(pages.opened(link["page"], link["query"] | {"level": "expert"}))
        assert len(codes) == len(link["printed"])
        for code, then in zip(codes, link["printed"], strict=True):
            assert (wrong := same_printed(run_here(code, tmp_path), "\n".join(then))) is None, wrong
