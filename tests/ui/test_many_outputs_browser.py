"""Train several outputs on a shared basis in a real browser, from a CSV to a report."""

from __future__ import annotations

from urllib.parse import urlencode

import numpy as np
import pandas as pd
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_a_table_goes_to_slices_words_and_a_report(server, page, wait_idle, shoot, tmp_path, rng):
    table = pd.DataFrame(rng.normal(size=(400, 5)).round(3), columns=list("abcde"))
    products = {
        "urgent": table.a * table.b,
        "billing": table.c * table.d,
        "abuse": table.a * table.b - table.e - 1.0,
        "praise": table.d * table.e,
    }
    for name, score in products.items():
        table[name] = np.where(score + 0.3 * rng.normal(size=len(table)) > 0.0, "yes", "no")
    outputs = list(products)
    asked = {"target": outputs[0], "also": "\t".join(outputs[1:])}
    path = tmp_path / "mine.csv"
    table.to_csv(path, index=False)
    page.goto(f"{server.url}/data")
    uploader = page.locator('[data-testid="stFileUploader"] input[type="file"]')
    uploader.wait_for(state="attached")
    wait_idle(page)
    uploader.set_input_files(str(path))
    page.wait_for_function("() => location.search.includes('file=')")
    file = page.evaluate("() => new URLSearchParams(location.search).get('file')")
    page.goto(f"{server.url}/data?{urlencode({'file': file, 'outputs': 'shared', **asked})}")
    train = page.locator(".st-key-data_train button:not([disabled])").first
    train.wait_for()
    page.get_by_text("all on one shared basis").first.wait_for()
    assert page.locator(".st-key-data_rank").count() == 0, "how many bases there are is chosen by λ"
    wait_idle(page)
    train.click()

    page.wait_for_url("**/train**", timeout=120_000)
    page.get_by_text("Take it with you").wait_for(timeout=120_000)
    wait_idle(page)
    main = page.locator('[data-testid="stMain"]')
    assert "Most bases" in main.inner_text()
    page.get_by_text("What speaks for each").first.wait_for()
    for name in outputs:
        page.get_by_text(name, exact=True).first.wait_for()
    shoot(page, "many-outputs-train")
    with page.expect_download(timeout=60_000) as waiting:
        page.locator(".st-key-train_report button").first.click()
    report = waiting.value.path().read_text(encoding="utf-8")
    assert all(name in report for name in outputs)

    run = page.evaluate("() => new URLSearchParams(location.search).get('run')")
    page.goto(f"{server.url}/interactions?run={run}")
    page.get_by_text("The strongest pair.").first.wait_for(timeout=60_000)
    wait_idle(page)
    assert outputs[0] in main.inner_text()
    shoot(page, "many-outputs-words")
