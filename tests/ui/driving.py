"""Drive pages with AppTest, and read what they show."""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from fmviz.ui.navigation import NAVIGATION, START
from fmviz.ui.settings.state import LEVELS

ROOT = Path(__file__).resolve().parents[2]
PAGES = tuple(
    "start" if link is START else Path(link.script).stem for links in NAVIGATION.values() for link in links
)


def page(name: str, /, **query: str) -> AppTest:
    """Return a page that has been opened by a link, and has drawn itself without a defect."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    if name != "start":
        app.switch_page(f"pages/{name}.py")
    for key, value in query.items():
        app.query_params[key] = value
    app.run()
    return app


def press(app: AppTest, *keys: str) -> AppTest:
    """Press buttons of a page, one after the other."""
    for key in keys:
        app.button(key=key).click().run()
    return app


def click(app: AppTest, label: str) -> AppTest:
    """Press the button with a label."""
    (button,) = (button for button in app.button if button.label == label)
    return button.click().run()


def finish(app: AppTest, key: str) -> AppTest:
    """Press a button, and draw the page again once the task that it starts is done."""
    return press(app, key).run()


def elements_of(block: Any) -> Iterator[Any]:
    """Return all that is drawn within a block."""
    for child in block.children.values():
        yield child
        if hasattr(child, "children"):
            yield from elements_of(child)


def control(app: AppTest, key: str) -> Any:
    """Return a control of a page."""
    return next(item for item in elements_of(app._tree) if getattr(item, "key", None) == key)


def choose(app: AppTest, **chosen: Any) -> AppTest:
    """Set controls of a page, one after the other."""
    for key, value in chosen.items():
        control(app, key).set_value(value).run()
    return app


def values(app: AppTest, *keys: str) -> tuple[Any, ...]:
    """Return what some controls of a page show."""
    return tuple(control(app, key).value for key in keys)


def written(app: AppTest) -> dict[str, str]:
    """Return the query string that a page has written into the address."""
    *_, element = (e for e in app.get("bidi_component") if e.proto.component_name == "fmviz.address")
    query: dict[str, str] = json.loads(element.proto.json)["query"]
    return query


def address(app: AppTest) -> dict[str, str]:
    """Return the settings in the address, without the level, which every address names."""
    given = written(app)
    assert given.pop("level") in LEVELS
    return given


def words(app: AppTest) -> str:
    """Return what a page says outside its tables."""
    parts = [*app.markdown, *app.caption, *app.info, *app.warning, *app.error, *app.success]
    lines = [header["stage"]["state"]["sentence"]] if (header := stage(app)) else []
    return "\n".join([*lines, *(part.value for part in parts)])


def decode(payload: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the header and the body of what a view of matrices is sent."""
    size = int.from_bytes(payload[4:8], "little")
    assert (payload[:4], size % 4) == (b"FMV1", 0)
    return json.loads(payload[8 : 8 + size]), payload[8 + size :]


def stage(app: AppTest) -> dict[str, Any]:
    """Return what the stage of the training page was sent, as its header says it; of other pages nothing."""
    for element in app.get("bidi_component"):
        if element.proto.component_name == "fmviz.stage":
            return decode(element.proto.bytes)[0]
    return {}


def metrics(app: AppTest) -> dict[str, str]:
    """Return the metrics of a page by their labels."""
    return {metric.label: metric.value for metric in app.metric}


def figures(app: AppTest) -> dict[str, str]:
    """Return the numbers of the stage by their labels."""
    drawn = stage(app).get("stage", {"numbers": ()})
    return {label: value for label, value, *_ in drawn["numbers"] or ()}


def numbers(app: AppTest) -> set[str]:
    """Return the numbers that a page says outside its tables, as it writes them."""
    return set(re.findall(r"\d+(?:[.,]\d+)*", words(app)))


def run_here(code: str, folder: Path) -> str:
    """Run a program as a file of its own in this process, which has loaded the kernels; return its output."""
    path = folder / "copied.py"
    path.write_text(code, encoding="utf-8")
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.chdir(folder):
        runpy.run_path(str(path), run_name="__main__")
    return output.getvalue()


def choose_target(page: Any, name: str) -> None:
    """Answer the question beside the button of the page Your data, in a browser."""
    question = page.locator(".st-key-data_target input").first
    question.click()
    page.keyboard.type(name)
    page.get_by_role("option", name=name, exact=True).click()
