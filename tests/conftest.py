"""What holds for every test."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pairwise import mark_products

# Runs that tests make are not entered into the store of whoever runs them.
_directory = tempfile.TemporaryDirectory(prefix="fmviz-tests-")
os.environ["FMVIZ_STORE"] = os.path.join(_directory.name, "runs.sqlite")


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Let what is drawn without a seed, as within scikit-learn's checks, be the same in every run."""
    np.random.seed(0)


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers that are the same in every run."""
    return np.random.default_rng(0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    """An empty run store."""
    from fmviz.lab.store import RunStore

    opened = RunStore(tmp_path / "runs.sqlite")
    yield opened
    opened.close()


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Run fmviz in this process, and check how it ends; return what has been printed since the last time."""
    from fmviz.__main__ import main

    def run(*line: Any, code: int = 0) -> Any:
        assert main([str(word) for word in line]) == code
        return capsys.readouterr()

    return run


@pytest.hookimpl(tryfirst=True)  # Before -m selects.
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Let one worker make all browser tests, and one all tests of a module of the engine.

    There is one server, and one browser at a time; kernels that a module's tests share are compiled once.
    """
    mark_products(items)
    for item in items:
        if item.get_closest_marker("browser") is not None:
            item.add_marker(pytest.mark.xdist_group("browser"))
        elif item.path.parent.name in ("engine", "estimators", "paths", "contracts"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
