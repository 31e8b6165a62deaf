"""The page about fmviz."""

from __future__ import annotations

import re

from ui.driving import ROOT

from fmviz.ui.about import KEYS


def test_every_key_of_a_button_is_told():
    message = {key for keys in KEYS.values() for key, _ in keys}
    for path in (ROOT / "fmviz" / "ui").rglob("*.py"):
        for key in re.findall(r'shortcut="([^"]+)"', path.read_text(encoding="utf-8")):
            assert key in message, f"{key} of {path.name} is not on the About page"
