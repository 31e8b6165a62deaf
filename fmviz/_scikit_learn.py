"""What the estimators take from scikit-learn, imported without two libraries that it only looks at.

One module of scikit-learn imports ``scipy.stats`` for a function that no estimator here calls, and pandas
where there is one; together they take most of the time. While it is imported, an empty module stands in the
place of the one and the other seems not to be installed. Afterwards both can be imported as ever: data
frames are recognised, and scikit-learn finds SciPy's statistics when it asks for them. Only a program of one
thread does so, since another thread could meet what stands in their places.
"""

import sys
import threading
from types import ModuleType

_PLACES: dict[str, ModuleType | None] = {"scipy.stats": ModuleType("scipy.stats"), "pandas": None}
_missing = {
    name: place
    for name, place in _PLACES.items()
    if name not in sys.modules and threading.active_count() == 1
}
sys.modules.update(_missing)  # type: ignore[arg-type]
try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
finally:
    for _name in _missing:
        del sys.modules[_name]

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "ConvergenceWarning",
    "RegressorMixin",
    "check_classification_targets",
    "check_is_fitted",
    "validate_data",
]
