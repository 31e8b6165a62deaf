"""An hour of visitors: whether the server's memory stays where it was.

    python -m bench.soak               # ten visitors for an hour
    python -m bench.soak 5 10          # five for ten minutes

Serves a dashboard of its own over a store of its own. Each visitor is a browser context of its own and walks
over all pages in turn, from another one on; on those that compute it presses the button, and looks on for a
moment. Printed are the resident memory of the server and its workers, every minute and by quarters of the
time, and what the pages called a defect. Linux only. Needs Playwright and a Chromium (FMVIZ_CHROMIUM names
one).
"""

from __future__ import annotations

import asyncio
import random
import re
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
from playwright.async_api import Page, async_playwright
from playwright.async_api import TimeoutError as PatienceError

from fmviz.ui.navigation import NAVIGATION

from .live_view import server_of
from .pages import launching, served_apart

PAGES = tuple(
    "" if link.script == "app.py" else Path(link.script).stem
    for links in NAVIGATION.values()
    for link in links
)
BUTTONS = re.compile("Play|Reseed|Run|Train|Begin|Next|Try the example|Show the example|Epoch by epoch|Open")
"""What starts work, or goes on, on a page."""
SECONDS = (3.0, 12.0)
"""How long a visitor stays on a page."""
_PATIENCE = 120_000
_EVERY = 60.0


def resident(pid: int) -> float:
    """Return the resident bytes of a process and of all that it has started."""
    status = Path(f"/proc/{pid}/status").read_text()
    own = 1024.0 * int(status.partition("VmRSS:")[2].split()[0])
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return own + sum(resident(int(child)) for child in children)


async def visit(page: Page, url: str, first: int, until: float, met: Counter[str]) -> None:
    """Walk over all pages in turn until the time is over."""
    chance, place = random.Random(first), first
    while time.monotonic() < until:
        name = PAGES[place % len(PAGES)]
        place += 1
        try:
            await page.goto(f"{url}/{name}")
            await page.get_by_role("heading", level=1).first.wait_for(timeout=_PATIENCE)
            await page.wait_for_timeout(1_500)
            offered = (
                page.get_by_test_id("stMain").get_by_role("button").filter(has_text=BUTTONS, visible=True)
            )
            if count := await offered.count():
                await offered.nth(chance.randrange(count)).click(timeout=5_000)
                met["pressed"] += 1
        except PatienceError:
            met["waited in vain"] += 1
        met["pages"] += 1
        await page.wait_for_timeout(1_000 * chance.uniform(*SECONDS))
        met["defects"] += await page.get_by_text("a defect of fmviz").count()
        met["defects"] += await page.get_by_test_id("stException").count()


async def watch(pid: int, began: float, until: float) -> np.ndarray:
    """Return what the server took, in bytes, at equal distances of time."""
    kept = []
    while time.monotonic() < until:
        await asyncio.sleep(min(_EVERY, until - time.monotonic()))
        try:
            kept.append(resident(pid))
        except (OSError, IndexError):
            continue
        print(f"{(time.monotonic() - began) / 60:.0f} min: {kept[-1] / 1e6:.0f} MB", flush=True)
    return np.array(kept)


async def soak(url: str, visitors: int, seconds: float) -> None:
    """Measure and print."""
    pid, met = server_of(url.rpartition(":")[2]), Counter[str]()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(**launching())
        pages = []
        for _ in range(visitors):
            context = await browser.new_context(viewport={"width": 1440, "height": 900})
            pages.append(await context.new_page())
        began = time.monotonic()
        until = began + seconds
        walks = [visit(page, url, first, until, met) for first, page in enumerate(pages)]
        kept, *_ = await asyncio.gather(watch(pid, began, until), *walks)
        await browser.close()
    quarters = [float(np.median(part)) for part in np.array_split(kept, 4) if part.size]
    told = ", ".join(f"{one / 1e6:.0f}" for one in quarters)
    print(f"medians of the quarters: {told} MB; the last over the first: {quarters[-1] / quarters[0]:.3f}")
    print(f"the most: {kept.max() / 1e6:.0f} MB, {kept.max() / quarters[0]:.3f} of the first quarter's")
    print(", ".join(f"{name}: {count:,}" for name, count in sorted(met.items())))


def main() -> None:
    """Serve, measure and print."""
    visitors = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    minutes = float(sys.argv[2]) if len(sys.argv) > 2 else 60.0
    with served_apart() as url:
        asyncio.run(soak(url, visitors, 60.0 * minutes))


if __name__ == "__main__":
    main()
