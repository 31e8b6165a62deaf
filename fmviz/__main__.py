"""The command line: ``python -m fmviz warmup``."""

from __future__ import annotations

import argparse
import sys
import time


def warmup(everything: bool) -> None:
    """Compile the kernels that the pages need first and keep them for later processes."""
    from fmviz.engine._jit import cache_directory
    from fmviz.engine.warmup import warm_everything, warm_operators, warm_training

    begin = time.perf_counter()
    warm_operators()
    count = 0
    for word in warm_everything() if everything else warm_training():
        count += 1
        if sys.stderr.isatty():
            print(f"\r\033[KReadying kernels: {word}", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    print(
        f"Kernels ready: {count} combinations in {time.perf_counter() - begin:.1f} s ({cache_directory()})."
    )


def main() -> None:
    """Parse the command line and do what it says."""
    parser = argparse.ArgumentParser(
        prog="fmviz", description="Sparse factorization machines, seen and trained."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    warm = commands.add_parser("warmup", help="compile the kernels that the dashboard needs first")
    warm.add_argument("--all", action="store_true", help="every kernel there is (minutes)")
    arguments = parser.parse_args()
    warmup(arguments.all)


if __name__ == "__main__":
    main()
