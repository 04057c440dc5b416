"""The program's entry: the agent goes its own way before anything but the standard library is loaded."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command that the arguments name; `agent` has 25 MiB to live in, so click is not for it."""
    if sys.argv[1:2] == ["agent"]:
        from jobs.agent.program import main as agent

        return agent(sys.argv[2:])
    import gc
    import os

    # pydantic would look through every installed package for plugins, at each start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

    from jobs.cli import main as commands

    # A pass makes many values and no cycles; looking for those costs a tenth of a big list's time.
    gc.set_threshold(100_000, 50, 50)
    try:
        return commands()
    finally:
        # The interpreter's last collection would walk through everything once more, only to end.
        gc.freeze()


if __name__ == "__main__":
    sys.exit(main())
