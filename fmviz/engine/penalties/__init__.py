"""Registry of penalties."""

from __future__ import annotations

from functools import partial

from ..settings import bind, registry
from .base import EntryView, MatrixView, Penalty, RowView

# In the order of the pages.
# isort: off
from .l2 import L2
from .l1 import L1
from .l21 import L21
from .ti import TI
from .cs import CS
from .omega_ti import OmegaTI
from .omega_cs import OmegaCS
from .omega_star import OmegaStar
from .powers import PowerTI, PowerCS
from .elastic_net import ElasticNet
from .mcp import MCP
from .group import Group
# isort: on

PENALTIES: dict[str, Penalty] = registry(Penalty, dict(globals()))
"""All penalties on P with default parameters, by name."""

from .l1_linf import L1LInf

OUTPUT_PENALTIES: dict[str, Penalty] = {"l1": L1(), "l1_l2": L21(), "l1_linf": L1LInf(), "l2": L2()}
"""All penalties on the output layer V of a shared basis, by their names in that model."""
ALL_PENALTIES: dict[str, Penalty] = PENALTIES | {
    penalty.name: penalty for penalty in OUTPUT_PENALTIES.values()
}
"""All penalties, on P or on V, by name."""


get_penalty = partial(bind, Penalty, PENALTIES | OUTPUT_PENALTIES)
"""Return a penalty unchanged, or create it by name with these parameters; see `bind`."""
