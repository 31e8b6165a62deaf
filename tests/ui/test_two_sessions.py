"""Two people train at once on one server: both runs progress, and both pages answer.

FMVIZ_TWO_SESSIONS_SECONDS makes it longer than the default 15 seconds.
"""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SECONDS = float(os.environ.get("FMVIZ_TWO_SESSIONS_SECONDS", "15"))
HEAVY = (
    "train?level=expert&dataset=flights&loss=logistic&rank=10&lambda_w=0.0001&lambda_p=0.00001"
    "&lambda_sparse=0.00004"
    "&init_scale=0.05"
)
_STAGE = """const box = document.querySelector(".st-key-train_matrix");
  const host = box && box.querySelector('[data-testid="stBidiComponentIsolated"]');
  const stage = host && host.shadowRoot && host.shadowRoot.querySelector(".fmviz-stage");"""
_AXIS = f"""axis => {{
  {_STAGE}
  return stage && stage.dataset.x === axis;
}}"""


# Both runs go on: neither waits for the other to end.
_LATER = f"""before => {{
  {_STAGE}
  const shown = stage && stage.querySelector(".numbers dd");
  return shown && Number(shown.textContent.replaceAll(",", "")) > before;
}}"""


def _epoch(page: Any) -> int:
    value = page.locator(".st-key-train_matrix .numbers dd").first
    return int(value.inner_text().replace(",", ""))


def _toggle(page: Any, label: str, title: str) -> None:
    """Change the axis of the curves, and wait until the chart shows it."""
    page.locator(".st-key-train_x").get_by_text(label, exact=True).click()
    page.wait_for_function(_AXIS, arg=title)


def test_two_sessions_train_at_once_and_both_pages_answer(server, new_page):
    pages = [new_page(), new_page(apart=True)]
    for seed, page in enumerate(pages):
        page.goto(f"{server.url}/{HEAVY}&seed={seed}&tol=0.0&max_epochs=100000&speed=full&play=1")
    for page in pages:
        page.locator(".st-key-train_matrix .status").get_by_text("Running").first.wait_for(timeout=60_000)
        page.locator(".st-key-train_matrix .numbers dd").first.wait_for(timeout=60_000)
    epochs = [[_epoch(page)] for page in pages]
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        for page in pages:
            _toggle(page, "Seconds", "seconds")
            _toggle(page, "Epochs", "epoch")
        for page, seen in zip(pages, epochs, strict=True):
            page.wait_for_function(_LATER, arg=seen[-1])
            seen.append(_epoch(page))
    for page in pages:
        page.locator(".st-key-train_stop button").first.click()
        page.locator(".st-key-train_matrix .status").get_by_text("Stopped").first.wait_for()
    assert min(seen[-1] for seen in epochs) > 0.3 * max(seen[-1] for seen in epochs), epochs
