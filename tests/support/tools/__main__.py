"""Builds or installs the programs of others that tests run, one by one: `python -m tests.support.tools`.

Several tests at once would build several at once, and each would take longer than a test may. What is not
possible here is named, and its tests say so again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.support.tools.axe import find_axe
from tests.support.tools.building import OF_DOCS, OF_RELEASES, PACKAGES, NoTool, find_environment, find_tool
from tests.support.tools.chromium import find_chromium


def main() -> None:
    """Find all of them; those that are here take no time."""
    finders: list[Callable[[], Path]] = [partial(find_tool, name) for name in PACKAGES]
    finders += [find_chromium, find_axe]
    finders += [partial(find_environment, *locks) for locks in (OF_DOCS, OF_RELEASES)]
    for find in finders:
        try:
            find()
        except NoTool as error:
            print(error, file=sys.stderr)


if __name__ == "__main__":
    main()
