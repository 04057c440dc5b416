"""Starts the plugin with the libraries beside this file."""

import sys
from pathlib import Path


def start() -> int:
    """Run the program under the name by which kubectl started it; return its exit code."""
    sys.path.insert(0, str(Path(__file__).resolve().parent / "site"))
    sys.argv[0] = "kubectl-maintenance"
    from jobs.__main__ import main

    return main()


if __name__ == "__main__":
    sys.exit(start())
