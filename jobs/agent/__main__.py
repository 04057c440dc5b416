"""Runs `python -m jobs.agent`, the command of the DaemonSet."""

import sys

from jobs.agent.program import main

if __name__ == "__main__":
    sys.exit(main())
