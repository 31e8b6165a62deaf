"""The papers, and a sentence that several figures share."""

from __future__ import annotations

REFERENCES = {
    "atarashi2021": "Atarashi, Oyama & Kurihara, Factorization Machines with Regularization for Sparse "
    "Feature Interactions, JMLR 22, 2021",
    "blondel2016": "Blondel, Ishihata, Fujino & Ueda, Polynomial Networks and Factorization Machines: New "
    "Insights and Efficient Training Algorithms, ICML 2016",
    "blondel2017": "Blondel, Niculae, Otsuka & Ueda, Multi-output Polynomial Networks and Factorization "
    "Machines, NIPS 2017",
    "robust_fm": "Robust and Effective Factorization Machines, anonymous manuscript",
}
"""By the names of their folders."""
SUMS = (
    "The paper sums the losses where fmviz averages them: its β is our λ_p = β/N in (13) and, for m = 2, in "
    "(12), and λ_p = mβ/(2N) in the lifted objective of any m."
)
