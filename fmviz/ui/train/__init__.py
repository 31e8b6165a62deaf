"""The page Train, and the registry of its panels."""

# In the order of the page.
# isort: off
from fmviz.ui.train.why_zero import WHY
from fmviz.ui.train.outliers import SET_ASIDE
from fmviz.ui.train.solvers import SOLVERS
from fmviz.ui.train.interactions import PAIRS
from fmviz.ui.train.panels import CONFUSION, OBJECTIVE, USES, PREDICTION, RECOVERY, TrainPanel
# isort: on

PANELS = tuple(value for value in dict(globals()).values() if isinstance(value, TrainPanel))
"""Every panel below the settings: a file and an import above."""
