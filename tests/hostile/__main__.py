"""Plays a hostile session and prints what it came to; the exit code is 1 if something is wrong."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from random import SystemRandom

from tests.hostile.session import Session
from tests.support.controlplane.server import ControlPlane

MEMORY = 128 * 1024
"""KiB: the most that `serve` may ever hold."""


def main() -> int:
    """Run one session."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6))
    parser.add_argument("--fault", default="", help="play only those whose names match it")
    parser.add_argument("--log", type=Path, default=Path("build/hostile.jsonl"), help="what was tried")
    chosen = parser.parse_args()
    chosen.log.parent.mkdir(parents=True, exist_ok=True)
    print(f"seed {chosen.seed}, {chosen.minutes:g} minutes; what is tried: {chosen.log}", flush=True)
    with tempfile.TemporaryDirectory() as folder, ControlPlane() as controlplane:
        result = Session(controlplane, Path(folder), chosen.seed, chosen.log).run(
            chosen.minutes * 60, chosen.fault
        )
    # Here, because it says something about the machine, too.
    if result.memory > MEMORY:
        result.wrong.append(f"serve held {result.memory} KiB, more than {MEMORY}")
    print(result.summary())
    return 1 if result.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
