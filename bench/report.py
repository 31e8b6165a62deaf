"""Print benchmark results as Markdown, and save them in bench/results/bench.json."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from .timing import where

RESULTS = Path(__file__).parent / "results"


def cell(value: Any) -> str:
    """Format a value for a table; unknown values are a dash."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "∞" if math.isinf(value) else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "") -> str:
    """Return a Markdown table with a title."""
    lines = [f"**{title}**", ""] if title else []
    lines += [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    lines += [f"| {' | '.join(cell(value) for value in row)} |" for row in rows]
    return "\n".join(lines)


def pick(rows: Iterable[dict[str, Any]], columns: dict[str, str]) -> str:
    """Return a Markdown table of records; `columns` maps keys to heads."""
    return table(list(columns.values()), [[row.get(key) for key in columns] for row in rows])


def finite(value: Any) -> Any:
    """Return the value with non-finite numbers replaced by None for JSON."""
    if isinstance(value, dict):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def load(path: Path = RESULTS / "bench.json") -> dict[str, Any]:
    """Return the saved date, machine and result of every section."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def keep(section: str, result: dict[str, Any], path: Path = RESULTS / "bench.json") -> None:
    """Replace the saved result of a section."""
    kept = load(path) | {section: {"where": where(), "result": finite(result)}}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def alone(section: str, run: Callable[[bool], dict[str, Any]], markdown: Callable[[Any], str]) -> None:
    """Run a single section, as in `python -m bench.<section>`."""
    with threadpool_limits(1, user_api="blas"):
        result = run(False)
    print(markdown(result))
    keep(section, result)


def at_least(bar: str, case: str, measured: float, required: float) -> dict[str, Any]:
    """Return a row of the table of bars for a value with a minimum."""
    return {
        "bar": bar,
        "case": case,
        "measured": measured,
        "required": f"≥ {required:g}",
        "met": measured >= required,
    }


def at_most(bar: str, case: str, measured: float, required: float) -> dict[str, Any]:
    """Return a row of the table of bars for a value with a maximum."""
    return {
        "bar": bar,
        "case": case,
        "measured": measured,
        "required": f"≤ {required:g}",
        "met": measured <= required,
    }
