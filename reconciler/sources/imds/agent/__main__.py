"""Runs `python -m reconciler.sources.imds.agent`, the command of the DaemonSet."""

import sys

from reconciler.sources.imds.agent.program import main

if __name__ == "__main__":
    sys.exit(main())
