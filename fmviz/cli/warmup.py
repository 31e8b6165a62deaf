"""``fmviz warmup``: compile kernels before their first use."""

from __future__ import annotations

import argparse
import time
from functools import partial

from fmviz.cli._terminal import Progress, declare, to_stderr

HELP = "compile the kernels that the dashboard needs first"

# Their layouts and losses are those of the data sets in every installation.
DATASETS = ("planted_interactions", "monks1", "bike", "flights")


add = partial(declare, {})


def run(arguments: argparse.Namespace) -> int:
    """Compile the kernels and cache them on disk."""
    from fmviz.engine._jit import cache_directory, is_writable
    from fmviz.engine.warmup import warm_operators, warm_training
    from fmviz.lab.experiment import suggested
    from fmviz.lab.runner import Run

    begin = time.perf_counter()
    warm_operators()
    count = 0
    with Progress() as progress:
        for word in warm_training(Run.prepare(suggested(name)).problem for name in DATASETS):
            count += 1
            progress.tell(f"Readying kernels: {word}")
    place, spent = cache_directory(), time.perf_counter() - begin
    print(f"Kernels ready: {count} combinations in {spent:.1f} s ({place}).")
    if not is_writable(place):
        to_stderr(
            f"{place} cannot be written, and new kernels are not cached; set FMVIZ_CACHE_DIR to another "
            "folder.",
        )
    return 0
