"""Our last result of every figure and table, which comes with fmviz: small files beside this module.

A file has two lines of JSON, compressed: what a card shows, and the result. `make results` writes them.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from fmviz.lab.store.results import Kept

FOLDER = Path(__file__).parent
_SUFFIX = ".json.gz"


def shipped_results() -> dict[tuple[str, str], Kept]:
    """Return what comes with fmviz, by artefact and budget."""
    kept = {}
    for head in heads().values():
        about = {name: head[name] for name in ("artefact", "budget", "created", "seconds", "verdicts")}
        parts = tuple(head["parts"]) if "parts" in head else None
        key = head["artefact"], head["budget"]
        kept[key] = Kept(**about, shipped=True, without=tuple(head["without"]), parts=parts)
    return kept


def shipped_picture(artefact: str) -> str:
    """Return the thumbnail of the result of an artefact that comes with fmviz, an SVG."""
    return str(heads()[artefact]["picture"])


def shipped_result(artefact: str, budget: str) -> dict[str, Any] | None:
    """Return the result of an artefact that comes with fmviz, as `Result.to_dict` told it, or None."""
    if heads().get(artefact, {}).get("budget") != budget:
        return None
    with gzip.open(path_of(artefact), "rt", encoding="utf-8") as file:
        file.readline()
        return dict(json.loads(file.readline()))


@cache
def heads() -> Mapping[str, Mapping[str, Any]]:
    """Return the first lines of all files, by artefact."""
    lines = {}
    for path in sorted(FOLDER.glob(f"*{_SUFFIX}")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            lines[path.name.removesuffix(_SUFFIX)] = json.loads(file.readline())
    return lines


def path_of(artefact: str) -> Path:
    """Return the file of an artefact."""
    return FOLDER / f"{artefact}{_SUFFIX}"
