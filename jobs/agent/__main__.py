"""Entry of `python -m jobs.agent`, as the DaemonSet runs it."""

import sys

from jobs.agent.program import main

if __name__ == "__main__":
    sys.exit(main())
