"""Randomly corrupted files and archives are read, or refused with a message."""

from __future__ import annotations

import io
import json
import random
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from fuzzing import forged, mutated
from inline_executor import InlineExecutor
from lab.hostile_files import FILES

from fmviz.lab.background.tasks import TaskManager
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.store import RunStore
from fmviz.lab.store.archive import export_runs, import_runs
from fmviz.lab.store.table import title_of_run
from fmviz.tables.encoded import encode
from fmviz.tables.files import read
from fmviz.tables.recipe import columns_of, first_recipe


@pytest.fixture(scope="module")
def small():
    """Files of at most 100 kB, by name."""
    files = ((file.name, file.make()) for file in FILES if "bomb" not in file.name)
    return [(name, data) for name, data in files if 50 < len(data) < 100_000]


@pytest.mark.sample(10)
@pytest.mark.parametrize("seed", range(200))
def test_broken_files_are_read_or_refused_in_a_sentence(small, seed):
    dice = random.Random(seed)
    name, data = dice.choice(small)
    try:
        source = read(mutated(data, dice), name=name)
        dataset = Dataset.of_table(encode(source, first_recipe(source, columns_of(source))), "x", "X")
    except ValueError as error:
        said = str(error)
        assert said.endswith("."), said
        assert "\n" not in said
        assert len(said) < 1_000
    else:
        assert np.isfinite(dataset.y).all()
        assert np.isfinite(dataset.X.data if sp.issparse(dataset.X) else dataset.X).all()


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The files of an exported run."""
    store = RunStore(tmp_path_factory.mktemp("fuzz") / "runs.sqlite")
    manager = TaskManager(InlineExecutor(), open_store=lambda: store)
    manager.start(Experiment(rank=2, max_epochs=3, tol=0.0))
    with zipfile.ZipFile(io.BytesIO(export_runs(store, [run.id for run in store.runs()]))) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


@pytest.mark.sample(10)
@pytest.mark.parametrize("seed", range(100))
def test_forged_archives_are_taken_or_refused_whole(archive, store, seed):
    dice = random.Random(seed)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive_file:
        for name, content in archive.items():
            if dice.random() < 0.1:
                content = mutated(content, dice)
            elif name.endswith(".json"):
                content = json.dumps(forged(json.loads(content), dice, 0.004)).encode()
            archive_file.writestr(name, content)
    try:
        ids, _ = import_runs(store, packed.getvalue())
    except ValueError as error:
        said = str(error)
        assert said.startswith("This file cannot be imported")
        assert "\n" not in said
        assert store.runs() == []
    else:
        for run in ids:
            assert title_of_run(store.get(run))
            assert len(store.trace(run)) >= 0
            store.parameters(run)
