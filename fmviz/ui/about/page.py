"""About fmviz: what it is, the papers, versions, licences, the keys, and a self-test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import streamlit as st

from fmviz.lab.background.task import TaskState, TaskView
from fmviz.lab.background.tasks import manager
from fmviz.lab.datasets import DATASETS
from fmviz.lab.runs.provenance import versions
from fmviz.lab.self_test import Finding, checkup
from fmviz.lab.store.runs import default_path
from fmviz.ui import shell
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings
from fmviz.ui.watching import watch

_TASK = "about:checkup"


@dataclass(frozen=True)
class Paper:
    """A paper that fmviz implements: how it is cited, and as BibTeX."""

    words: str
    bibtex: str


PAPERS = (
    Paper(
        "K. Atarashi, S. Oyama and M. Kurihara, *Factorization Machines with Regularization for Sparse "
        "Feature Interactions*, Journal of Machine Learning Research 22, 2021. TI and CS, their operators "
        "and solvers, machines of higher order.",
        """@article{atarashi2021factorization,
  author  = {Kyohei Atarashi and Satoshi Oyama and Masahito Kurihara},
  title   = {Factorization Machines with Regularization for Sparse Feature Interactions},
  journal = {Journal of Machine Learning Research},
  volume  = {22},
  year    = {2021}
}""",
    ),
    Paper(
        "M. Blondel, M. Ishihata, A. Fujino and N. Ueda, *Polynomial Networks and Factorization Machines: "
        "New Insights and Efficient Training Algorithms*, ICML 2016. Polynomial networks, kernel expansions, "
        "the lifted approach.",
        """@inproceedings{blondel2016polynomial,
  author    = {Mathieu Blondel and Masakazu Ishihata and Akinori Fujino and Naonori Ueda},
  title     = {Polynomial Networks and Factorization Machines: New Insights and Efficient Training
               Algorithms},
  booktitle = {Proceedings of the 33rd International Conference on Machine Learning},
  year      = {2016}
}""",
    ),
    Paper(
        "M. Blondel, V. Niculae, T. Otsuka and N. Ueda, *Multi-output Polynomial Networks and Factorization "
        "Machines*, NIPS 2017. Several outputs on a shared basis, and the conditional gradient for them.",
        """@inproceedings{blondel2017multi,
  author    = {Mathieu Blondel and Vlad Niculae and Takuma Otsuka and Naonori Ueda},
  title     = {Multi-output Polynomial Networks and Factorization Machines},
  booktitle = {Advances in Neural Information Processing Systems 30},
  year      = {2017}
}""",
    ),
    Paper(
        "*Robust and Effective Factorization Machines*, anonymous manuscript. Capped losses and norms, which "
        "set outliers aside.",
        """@misc{robust_fm,
  author = {Anonymous},
  title  = {Robust and Effective Factorization Machines},
  note   = {Manuscript}
}""",
    ),
)
KEYS = {
    "A slider": (
        ("← → ↑ ↓", "one step; the pictures follow"),
        ("Home, End", "to either end"),
    ),
    "A matrix": (
        ("Tab", "to the next matrix"),
        ("← → ↑ ↓", "from cell to cell, whose value is shown and read aloud; with Shift ten at a time"),
        ("Enter", "picks the cell, where a click would"),
    ),
    "The Train page": (
        ("P", "play"),
        ("H", "pause"),
        ("S", "one step"),
        ("X", "stop"),
        ("0", "reset"),
        ("N", "the next seed"),
    ),
    "λ-path, Sweeps and Compare": (
        ("P", "run, or start the comparison"),
        ("X", "stop"),
        ("E", "estimate the time of a sweep"),
    ),
    "A lesson": (("J", "next"), ("K", "back"), ("V", "reveal")),
}
"""The keys by where they work. A single letter works while no text is being typed."""


def render() -> None:
    """Draw the page."""
    with shell.page("About", Settings("about", unread=("dataset", "seed"))) as settings:
        shell.heading(
            settings,
            "About",
            "fmviz shows what sparse factorization machines do. A regularizer sets entries of the factors "
            "**P** to exactly zero, and with them interactions in **PPᵀ**; here you see which, and train "
            "models that choose their interactions. Beside each result stands a **certificate**, recomputed "
            "independently: how far it is from optimal. The same can be done from Python (`import fmviz`) "
            "and on the command line (`fmviz --help`).",
        )
        _glossary()
        _papers()
        _keys()
        _test()
        _made()


def glossary() -> str:
    """Return the table of docs/glossary.md: that of a checkout, or the copy in an installed package."""
    package = Path(__file__).resolve().parents[2]
    places = (package.parent / "docs" / "glossary.md", package / "app" / "docs" / "glossary.md")
    found = next((place for place in places if place.is_file()), None)
    text = "" if found is None else found.read_text(encoding="utf-8")
    return text[text.find("\n| ") + 1 :]


def _glossary() -> None:
    if table := glossary():
        with st.expander("Glossary: the words and symbols of these pages", icon=":material/dictionary:"):
            st.markdown(table)


def _papers() -> None:
    st.subheader("The papers, and how to cite them")
    for paper in PAPERS:
        st.markdown(paper.words)
    with st.expander("BibTeX", icon=":material/format_quote:"):
        st.code("\n\n".join(paper.bibtex for paper in PAPERS), language="bibtex", wrap_lines=True)


def _keys() -> None:
    rows = [
        f"| {'' if number else place} | `{key}` | {words} |"
        for place, keys in KEYS.items()
        for number, (key, words) in enumerate(keys)
    ]
    with st.expander("Keyboard shortcuts", icon=":material/keyboard:"):
        st.markdown("| Where | Key | What it does |\n|---|---|---|\n" + "\n".join(rows))


# --------------------------------------------------------------------------------------------- self-test


def _findings(should_stop: Callable[[], bool]) -> Iterator[Finding]:
    for one in checkup(default_path()):
        yield one
        if should_stop():
            return


def _test() -> None:
    st.subheader("Check this installation")
    st.markdown(
        "The self-test reports versions and folders, checks every proximal operator against its certificate, "
        "and fits a model: seconds, or a minute where kernels have to be compiled first."
    )
    tasks = manager()
    task = tasks.get(_TASK)
    active = task is not None and task.state.active

    def start() -> None:
        tasks.submit(_TASK, _findings)

    with st.container(horizontal=True, key="about_controls"):
        st.button(
            "Test this installation" if task is None else "Test again",
            icon=":material/health_and_safety:",
            key="about_test",
            type="primary",
            disabled=active,
            on_click=start,
        )
        st.button(
            "Stop",
            icon=":material/stop:",
            key="about_stop",
            disabled=not active,
            on_click=task.stop if task is not None else None,
        )
    if task is not None:
        watch(task, _draw)


def _draw(view: TaskView) -> None:
    found: list[Finding] = list(view.items)
    bad = [one for one in found if not one.fine]
    if view.state.active:
        now = f" Last: {plain(found[-1].part)}, {plain(found[-1].name)}." if found else ""
        st.caption(f"{len(found)} checks in {view.elapsed:.0f} s.{now}")
    elif view.state is TaskState.FAILED:
        st.error(plain(view.message), icon=":material/error:")
    elif view.state is TaskState.STOPPED:
        st.caption(f"Stopped after {len(found)} checks.")
    elif bad:
        names = ", ".join(plain(f"{one.part}: {one.name}") for one in bad)
        st.error(f"Not as it must be: {names}. The table says why.", icon=":material/error:")
    else:
        words = f"Everything works: {len(found)} checks in {view.elapsed:.1f} s."
        st.success(words, icon=":material/check:")
    if found:
        st.dataframe(
            pd.DataFrame(
                {
                    "": ["✓" if one.fine else "✕" for one in found],
                    "Part": [one.part for one in found],
                    "What": [one.name for one in found],
                    "Found": [one.words for one in found],
                }
            ),
            hide_index=True,
            key="about_findings",
            height=min(38 + 35 * len(found), 420),
            column_config={
                "": st.column_config.TextColumn(width=40),
                "Part": st.column_config.TextColumn(width=100),
                "What": st.column_config.TextColumn(width=140),
                "Found": st.column_config.TextColumn(width="large"),
            },
            alt=f"{len(found)} checks, {len(bad)} of them not as they must be.",
        )


# ----------------------------------------------------------------------------------- versions and licences


def _made() -> None:
    st.subheader("Versions and licences")
    st.code("\n".join(f"{name:<9} {value}" for name, value in versions().items()), language=None)
    st.markdown(
        "fmviz is free software under the BSD 3-Clause licence. The data sets have licences of their own."
    )
    rows = [
        f"| {plain(one.title)} | {plain(one.source or 'made here')} | {plain(one.licence or '–')} |"
        for one in DATASETS.values()
    ]
    with st.expander("Licences of the data sets", icon=":material/dataset:"):
        st.markdown("| Data | Source | Licence |\n|---|---|---|\n" + "\n".join(rows))
