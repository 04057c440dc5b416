"""Writes the pictures of the page for the docs: `python -m tests.features.page.pictures [FOLDER]`.

They show the scene at three widths, in both colour schemes, as `serve` sends it.
"""

from __future__ import annotations

import sys
from base64 import b64decode
from datetime import timedelta
from pathlib import Path

from jobs.runtime.health import HealthServer
from jobs.runtime.process import Passed
from reconciler.features.page.live import LivePage
from reconciler.model.reconciler import Reconciler, Running
from reconciler.model.values import replace
from tests.features.page.scene import SETTINGS, facts
from tests.support import builders
from tests.support.builders import NOW
from tests.support.tools.chromium import Chromium, find_chromium

FOLDER = Path(__file__).parents[3] / "docs" / "images"
SIZES = ((390, 844), (1024, 900), (1600, 1000))
"""Widths and heights in pixels: a phone, a tablet, a screen."""


def page() -> LivePage:
    """The page of the scene, some seconds after its pass."""
    made = facts()
    acts = Reconciler(
        Running.RUNNING, "reconciler-7d9c-x2x/1/ab", NOW, timedelta(seconds=30), "Enforce", "prod-westeurope"
    )
    times = iter([NOW - timedelta(days=9)])
    live = LivePage(lambda: "", lambda: next(times, NOW + timedelta(seconds=12)), lambda _: made.readiness)
    live.keep(made.history.ended)
    plan = replace(made.plan, reconciler=acts)
    live.after(Passed(plan, builders.settings(SETTINGS), (), rehearsed=False))
    return live


def main() -> None:
    """Write a picture for each width and scheme."""
    folder = Path(sys.argv[1]) if sys.argv[1:] else FOLDER
    server = HealthServer(("127.0.0.1", 0), {}, documents=page().documents)
    with server, Chromium(find_chromium()) as browser:
        for width, height in SIZES:
            for dark in (False, True):
                with browser.tab(width, dark=dark) as tab:
                    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
                    tab.send("Emulation.setDeviceMetricsOverride", **size)
                    tab.send("Emulation.setScrollbarsHidden", hidden=True)
                    tab.open(f"http://{server.place}/")
                    picture = tab.send("Page.captureScreenshot", format="webp", quality=30)["data"]
                    name = f"page-{width}-{'dark' if dark else 'light'}.webp"
                    (folder / name).write_bytes(b64decode(picture))


if __name__ == "__main__":
    main()
