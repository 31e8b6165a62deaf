"""The page About: what fmviz is, its papers, glossary, keys, versions and licences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import streamlit as st

from fmviz.lab.runs.provenance import versions
from fmviz.ui import shell
from fmviz.ui.settings.state import Settings

PAPERS = (
    (
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
    (
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
    (
        "M. Blondel, V. Niculae, T. Otsuka and N. Ueda, *Multi-output Polynomial Networks and Factorization "
        "Machines*, NIPS 2017. Several outputs on a shared basis, and the conditional gradient for them.",
        """@inproceedings{blondel2017multi,
  author    = {Mathieu Blondel and Vlad Niculae and Takuma Otsuka and Naonori Ueda},
  title     = {Multi-output Polynomial Networks and Factorization Machines},
  booktitle = {Advances in Neural Information Processing Systems 30},
  year      = {2017}
}""",
    ),
    (
        "*Robust and Effective Factorization Machines*, anonymous manuscript. Capped losses and norms, which "
        "set outliers aside.",
        """@misc{robust_fm,
  author = {Anonymous},
  title  = {Robust and Effective Factorization Machines},
  note   = {Manuscript}
}""",
    ),
)
"""The citation of each paper, as text and as BibTeX."""
KEYS = {
    "A slider": (
        ("← → ↑ ↓", "move by one step"),
        ("Home, End", "move to either end"),
    ),
    "A matrix": (
        ("Tab", "move to the next matrix"),
        ("← → ↑ ↓", "move between cells; the value is shown and read aloud (Shift: ten cells)"),
        ("Enter", "select the cell, like a click"),
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
    ),
    "A lesson": (("J", "next"), ("K", "back"), ("V", "reveal")),
}
"""Keyboard shortcuts by scope. Single letters work outside text fields."""


def render() -> None:
    """Draw the page."""
    with shell.page("About", Settings("about", unread=("dataset", "seed"))) as settings:
        shell.heading(
            settings,
            "About",
            "fmviz visualizes and trains sparse factorization machines. A regularizer sets entries of the "
            "factors **P**, and with them interactions in **PPᵀ**, to exactly zero. Each result comes with a "
            "**certificate**, an independently recomputed measure of its optimality. fmviz also works from "
            "Python (`import fmviz`) and on the command line (`fmviz --help`).",
        )
        if table := glossary():
            with st.expander("Glossary of terms and symbols", icon=":material/dictionary:"):
                st.markdown(table)
        st.subheader("Papers and citations")
        for words, _ in PAPERS:
            st.markdown(words)
        with st.expander("BibTeX", icon=":material/format_quote:"):
            st.code("\n\n".join(bibtex for _, bibtex in PAPERS), language="bibtex", wrap_lines=True)
        keys = [
            ("" if number else place, f"`{key}`", words)
            for place, known in KEYS.items()
            for number, (key, words) in enumerate(known)
        ]
        with st.expander("Keyboard shortcuts", icon=":material/keyboard:"):
            st.markdown(_rows(("Where", "Key", "Action"), keys))
        st.subheader("Versions and licences")
        st.code("\n".join(f"{name:<9} {value}" for name, value in versions().items()), language=None)
        st.markdown("`fmviz doctor` checks this installation: libraries, folders and a compiled kernel.")
        st.markdown(
            "fmviz is free software under the BSD 3-Clause licence. Data sets have separate licences, stated "
            "beside their menu."
        )


def _rows(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as Markdown."""
    first, *others = (f"| {' | '.join(row)} |" for row in (head, *rows))
    return "\n".join([first, "|" + "---|" * len(head), *others])


def glossary() -> str:
    """Return the table of docs/glossary.md, from the checkout or the installed package."""
    package = Path(__file__).resolve().parents[1]
    places = (package.parent / "docs" / "glossary.md", package / "app" / "docs" / "glossary.md")
    path = next((place for place in places if place.is_file()), None)
    text = "" if path is None else path.read_text(encoding="utf-8")
    return text[text.find("\n| ") + 1 :]
