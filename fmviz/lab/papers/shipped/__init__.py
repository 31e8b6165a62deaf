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

from fmviz.lab.store.results import Kept, verdicts_of

__all__ = ["FOLDER", "keep_shipped", "shipped_picture", "shipped_result", "shipped_results"]

FOLDER = Path(__file__).parent
_SUFFIX = ".json.gz"


def shipped_results() -> dict[tuple[str, str], Kept]:
    """Return what comes with fmviz, by artefact and budget."""
    kept = {}
    for head in _heads().values():
        about = {name: head[name] for name in ("artefact", "budget", "created", "seconds", "verdicts")}
        parts = tuple(head["parts"]) if "parts" in head else None
        key = head["artefact"], head["budget"]
        kept[key] = Kept(**about, shipped=True, without=tuple(head["without"]), parts=parts)
    return kept


def shipped_picture(artefact: str) -> str:
    """Return the thumbnail of the result of an artefact that comes with fmviz, an SVG."""
    return str(_heads()[artefact]["picture"])


def shipped_result(artefact: str, budget: str) -> dict[str, Any] | None:
    """Return the result of an artefact that comes with fmviz, as `Result.to_dict` told it, or None."""
    if _heads().get(artefact, {}).get("budget") != budget:
        return None
    with gzip.open(_path(artefact), "rt", encoding="utf-8") as file:
        file.readline()
        return dict(json.loads(file.readline()))


def keep_shipped(result: Mapping[str, Any], created: float, picture: str) -> Path:
    """Write a result, of `Result.to_dict`, with its time in seconds since the epoch and its picture."""
    wanted = result["settings"].get("data", ())
    head = {
        **{name: result[name] for name in ("artefact", "budget", "seconds")},
        "created": round(created),
        "verdicts": verdicts_of(result),
        "without": [name for name in wanted if name not in result["data"]],
        "picture": picture,
    }
    if result["state"] != "complete":
        head["parts"] = [result["done"], result["total"]]
    lines = (json.dumps(part, separators=(",", ":"), ensure_ascii=False) for part in (head, result))
    path = _path(result["artefact"])
    # Without a time in its head, so that equal results are equal files.
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))
    _heads.cache_clear()
    return path


@cache
def _heads() -> Mapping[str, Mapping[str, Any]]:
    heads = {}
    for path in sorted(FOLDER.glob(f"*{_SUFFIX}")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            heads[path.name.removesuffix(_SUFFIX)] = json.loads(file.readline())
    return heads


def _path(artefact: str) -> Path:
    return FOLDER / f"{artefact}{_SUFFIX}"
