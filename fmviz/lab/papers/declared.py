"""Figures and tables whose words, settings and printed numbers stand in a TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from fmviz.lab.papers.base import Artefact, Picture, Published, Runner
from fmviz.lab.papers.references import REFERENCES
from fmviz.lab.papers.reproduction import Settings
from fmviz.lab.papers.statements import Judge, Statement


def figure(
    module: str,
    runner: Runner,
    judges: Mapping[str, Judge],
    *,
    settings: Settings | None = None,
    budgets: Mapping[str, Settings] | None = None,
    published: Iterable[Published] = (),
    **words: Any,
) -> Artefact:
    """Return the artefact whose words and numbers stand in the TOML file beside a module.

    The file has ``title``, ``minutes``, ``differences``, ``[settings]``, ``[budgets]`` and ``[picture]``, a
    table ``[[statements]]`` for each statement, and ``[[published]]``, or ``[[sizes]]`` of data sets.

    Parameters
    ----------
    module : str
        Its name, which ends in the folder of the paper and the name of the figure.
    runner : callable
        See `Artefact`.
    judges : mapping of str to callable
        The judge of each statement, by its key.
    settings, budgets : mapping, optional
        Settings that are computed, and those of budgets.
    published : iterable of Published
        Further published numbers.
    **words
        What the differences name in braces.

    Raises
    ------
    ValueError
        If the statements of the file and the judges are not the same.
    """
    _, paper, name = module.rsplit(".", 2)
    told = declared(module)
    keys = {one["key"] for one in told["statements"]}
    if keys != set(judges):
        raise ValueError(f"{name}.toml and its judges differ in {', '.join(sorted(keys ^ set(judges)))}.")
    picture = dict(told["picture"])
    sizes = [
        Published("data", {"data": one["data"]}, column, value, one["source"])
        for one in told.get("sizes", ())
        for column, value in one.items()
        if column not in ("data", "source")
    ]
    return Artefact(
        name=f"{paper}_{name}",
        paper=REFERENCES[paper],
        title=told["title"],
        statements=tuple(Statement(**one, judge=judges[one["key"]]) for one in told["statements"]),
        differences=tuple(text.format_map(words) if words else text for text in told["differences"]),
        settings={**told["settings"], **(settings or {})},
        budgets={
            budget: {**own, **(budgets or {}).get(budget, {})} for budget, own in told["budgets"].items()
        },
        minutes=told["minutes"],
        runner=runner,
        picture=Picture(picture.pop("kind"), picture),
        published=(*(Published(**one) for one in told.get("published", ())), *sizes, *published),
    )


def declared(module: str) -> dict[str, Any]:
    """Return what the TOML file beside a module says."""
    package, _, name = module.rpartition(".")
    return tomllib.loads(files(package).joinpath(f"{name}.toml").read_text(encoding="utf-8"))
