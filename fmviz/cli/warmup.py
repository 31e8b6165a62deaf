"""``fmviz warmup``: compile kernels before they are needed."""

from __future__ import annotations

import argparse
import time

from fmviz.cli._terminal import Progress

HELP = "compile the kernels that the dashboard needs first"


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--all", action="store_true", help="every kernel there is (minutes)")


def run(arguments: argparse.Namespace) -> int:
    """Compile the kernels and keep them for later processes."""
    from fmviz.engine._jit import cache_directory
    from fmviz.engine.warmup import warm_everything, warm_operators, warm_training

    begin = time.perf_counter()
    warm_operators()
    count, progress = 0, Progress(every=0)
    for word in warm_everything() if arguments.all else warm_training():
        count += 1
        progress.tell(f"Readying kernels: {word}")
    progress.clear()
    print(
        f"Kernels ready: {count} combinations in {time.perf_counter() - begin:.1f} s ({cache_directory()})."
    )
    return 0
