"""A copy of what commit bcea1f3 has left behind, for every test its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from apptests import scan_packages_once

from fmviz.lab.store import RunStore

scan_packages_once()

DATA = Path(__file__).parent / "data"


@pytest.fixture
def data() -> Path:
    """The folder of what is kept, which nobody writes to."""
    return DATA


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunStore]:
    """The run store with the data of one's own beside it, as this process's store."""
    shutil.copy(DATA / "store.db", tmp_path)
    shutil.copytree(DATA / "store-data", tmp_path / "store-data")
    monkeypatch.setenv("FMVIZ_STORE", str(tmp_path / "store.db"))
    store = RunStore()
    yield store
    store.close()
