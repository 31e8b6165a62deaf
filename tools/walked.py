"""Count the functions called by the first row of Train, preparation of a run, a fit and a search for λ.

    python -m tools.walked          # the counts
    python -m tools.walked --names  # and every function, by file

It counts distinct named code objects under fmviz/ in the second call, with warm caches; of a fit and a search
for λ only those that prepare and drive it, in `DRIVERS`, without models, penalties and solvers.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from streamlit.testing.v1 import AppTest

import fmviz
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run
from fmviz.ui.train import page

ROOT = Path(__file__).resolve().parents[1]
DRIVERS = (
    *("fmviz/estimators/", "fmviz/paths/", "fmviz/engine/fit.py"),
    *("fmviz/engine/compatibility.py", "fmviz/engine/starts/informed.py"),
)


def walked(function: Callable[..., Any], *args: Any) -> Counter[CodeType]:
    """Call a function; return the code objects under fmviz/ that were entered, with the number of calls."""
    entered: Counter[CodeType] = Counter()

    def enter(frame: FrameType, event: str, arg: object) -> None:
        code = frame.f_code
        named = not code.co_name.startswith("<")
        if event == "call" and named and code.co_filename.startswith(str(ROOT / "fmviz")):
            entered[code] += 1

    sys.setprofile(enter)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return entered


def first_row() -> Counter[CodeType]:
    """Return the code objects entered when drawing the first row of Train's controls a second time."""
    drawn: list[Counter[CodeType]] = []
    original = page.main_settings
    page.main_settings = lambda *args: drawn.append(walked(original, *args))
    try:
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
        app.switch_page("pages/train.py").run().run()
    finally:
        page.main_settings = original
    assert not app.exception, app.exception
    return drawn[-1]


def prepare() -> Counter[CodeType]:
    """Return the code objects entered when preparing the default run a second time."""
    experiment = Experiment()
    Run.prepare(experiment)
    return walked(Run.prepare, experiment)


def driven(function: Callable[..., Any]) -> Counter[CodeType]:
    """Return the code objects of `DRIVERS` entered when calling a function a second time."""
    function()
    entered = walked(function)
    return Counter({code: n for code, n in entered.items() if _file(code).startswith(DRIVERS)})


def _file(code: CodeType) -> str:
    return Path(code.co_filename).relative_to(ROOT).as_posix()


def main() -> int:
    """Print the counts and, on request, the functions."""
    X, y, _ = fmviz.datasets.make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)
    settings: dict[str, Any] = {"rank": 3, "max_iter": 5, "tol": 0.0, "random_state": 0}
    machine = fmviz.FactorizationMachineRegressor(**settings)
    for title, entered in (
        ("Train's first row", first_row()),
        ("Run.prepare", prepare()),
        ("an estimator's fit", driven(lambda: machine.fit(X, y))),
        ("find_lambda", driven(lambda: [*fmviz.find_lambda(X, y, 18, **settings)])),
    ):
        print(f"{title}: {len(entered)} functions, {entered.total()} calls")
        if "--names" in sys.argv:
            for code, calls in sorted(
                entered.items(), key=lambda item: (item[0].co_filename, item[0].co_name)
            ):
                print(f"    {_file(code)}: {code.co_qualname} {calls}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
