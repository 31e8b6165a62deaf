"""Measure speed and memory, print the tables, and save them with date and machine.

    python -m bench                                    # everything: about an hour
    python -m bench --quick                            # few cases, some minutes; saved only with --keep
    python -m bench --only epochs,time_to
    python -m bench --peers-python /path/to/python --libfm /path/to/libFM

Tables and figures go to bench/results: bench.md, bench.json.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
import time
from typing import Any

from threadpoolctl import threadpool_limits

from .peers import ONE_THREAD
from .report import RESULTS, keep, load, pick
from .timing import where

SECTIONS = {
    "versus": "Epochs against other programs",
    "epochs": "Epochs against the floor",
    "time_to": "Time to a common objective",
    "operators": "Operators",
    "path": "Regularization path",
    "scaling": "Growth with features and non-zero entries",
    "memory": "Peak memory",
    "startup": "Import and compilation",
    "sparse_psgd": "Exact sparse PSGD",
    "precision": "X in single precision",
}
BAR_COLUMNS = {
    "bar": "bar",
    "case": "case",
    "measured": "measured",
    "required": "required",
    "met": "met",
    "date": "date",
}


def module_of(section: str) -> Any:
    """Return the module of a section, None if it does not exist."""
    name = f"bench.{section}"
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


def all_bars(kept: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all bars covered by the saved results, ordered by number."""
    rows = []
    for section, part in kept.items():
        judge = getattr(module_of(section), "bars", None)
        if judge is not None:
            rows += [row | {"date": part["where"]["date"]} for row in judge(part["result"])]
    return sorted(rows, key=lambda row: row["bar"])


def document(kept: dict[str, Any]) -> str:
    """Return all tables, each with date and machine."""
    bars = all_bars(kept)
    met = sum(row["met"] for row in bars)
    parts = ["# Measured", f"{met} of {len(bars)} bars are met.", pick(bars, BAR_COLUMNS)]
    for section, title in SECTIONS.items():
        if section in kept:
            place = ", ".join(f"{key} {value}" for key, value in kept[section]["where"].items())
            parts += [f"## {title}", f"{place}.", module_of(section).markdown(kept[section]["result"])]
    return "\n\n".join(parts) + "\n"


def sections(text: str) -> list[str]:
    """Return the sections named in a comma-separated list."""
    chosen = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in chosen if name not in SECTIONS]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"{', '.join(unknown)}: unknown section; choose from {', '.join(SECTIONS)}"
        )
    return chosen


def main() -> None:
    """Run the benchmarks of the command line."""
    parser = argparse.ArgumentParser(
        prog="bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few cases and few rounds")
    parser.add_argument("--keep", action="store_true", help="save the results of a quick run, too")
    parser.add_argument("--only", type=sections, default=list(SECTIONS), help=", ".join(SECTIONS))
    parser.add_argument("--peers-python", help="a Python that can import sparsepoly (or FMVIZ_PEERS)")
    parser.add_argument("--libfm", help="libFM's binary (or FMVIZ_LIBFM)")
    arguments = parser.parse_args()
    os.environ.update(ONE_THREAD)
    for name, value in (("FMVIZ_PEERS", arguments.peers_python), ("FMVIZ_LIBFM", arguments.libfm)):
        if value:
            os.environ[name] = value
    kept = load()
    keeping = arguments.keep or not arguments.quick
    for section in arguments.only:
        module = module_of(section)
        if module is None:
            print(f"{SECTIONS[section]}: bench/{section}.py does not exist; skipped.", file=sys.stderr)
            continue
        begin = time.perf_counter()
        print(f"\n## {SECTIONS[section]}\n", flush=True)
        with threadpool_limits(1, user_api="blas"):
            result = module.run(arguments.quick)
        print(f"\n{module.markdown(result)}\n\n({time.perf_counter() - begin:.0f} s)", flush=True)
        kept[section] = {"where": where(), "result": result}
        if keeping:
            keep(section, result)
    print(f"\n## Bars\n\n{pick(all_bars(kept), BAR_COLUMNS)}")
    if keeping:
        RESULTS.joinpath("bench.md").write_text(document(load()), encoding="utf-8")


if __name__ == "__main__":
    main()
