"""Every example in a docstring of fmviz is true, and every public class and function has one."""

from __future__ import annotations

import doctest
import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import fmviz

ROOT = Path(fmviz.__file__).parents[1]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PUBLIC_MODULES = ("fmviz.datasets", "fmviz.estimators", "fmviz.metrics", "fmviz.paths", "fmviz.plot")
WITH_EXAMPLES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((ROOT / "fmviz").rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_are_true(name):
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    report: list[str] = []
    for examples in doctest.DocTestFinder().find(import_module(name), name):
        runner.run(examples, out=report.append)
    assert not report, "".join(report)
    assert runner.tries > 0


def has_example(thing: Any) -> bool:
    return bool(doctest.DocTestParser().get_examples(inspect.getdoc(thing) or ""))


def test_every_public_class_and_function_has_an_example():
    for name in fmviz.__all__:
        thing = getattr(fmviz, name)
        assert inspect.ismodule(thing) or has_example(thing), f"fmviz.{name} has no example"


@pytest.mark.parametrize("name", PUBLIC_MODULES)
def test_every_function_of_a_public_module_has_an_example(name):
    module = import_module(name)
    for each in module.__all__:
        thing = getattr(module, each)
        # Classes that only hold results are shown by the functions that return them.
        assert not inspect.isfunction(thing) or has_example(thing), f"{name}.{each} has no example"
