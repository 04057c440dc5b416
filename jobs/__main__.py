"""The program's entry."""

from __future__ import annotations

import sys

COLLECTS = (100_000, 50, 50)
"""Thresholds of the search for cycles, a tenth of a big pass. A pass creates many values and no cycles."""


def main() -> int:
    """Run the command that the arguments name."""
    import gc
    import os

    # pydantic would search every installed package for plugins, at each start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

    from reconciler.plugins import PluginError

    try:
        from jobs.cli import main as commands
    except PluginError as error:
        print(error, file=sys.stderr)
        return error.exit_code

    gc.set_threshold(*COLLECTS)
    try:
        return commands()
    finally:
        # The interpreter's last collection would visit every object once more, only to exit.
        gc.freeze()


if __name__ == "__main__":
    sys.exit(main())
