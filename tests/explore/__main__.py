"""Plays random histories and prints what they came to; the exit code is 1 if a law is broken."""

from __future__ import annotations

import argparse
import sys
import time
from random import SystemRandom

from tests.explore.choices import draw
from tests.explore.exploring import Sum, as_test, explore, play, smallest


def main() -> int:
    """Explore."""
    parser = argparse.ArgumentParser(prog="python -m tests.explore", description=__doc__)
    parser.add_argument("--days", type=float, default=200, help="simulated days")
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6))
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--one", type=int, metavar="SEED", help="play the history of one seed only")
    parser.add_argument("--broken", type=int, default=1, help="end after so many histories that break a law")
    parser.add_argument("--no-shrink", action="store_true", help="print a broken history as it is")
    chosen = parser.parse_args()
    began, total = time.monotonic(), Sum()
    seed = chosen.seed if chosen.one is None else chosen.one
    print(f"seed {seed}", flush=True)
    if chosen.one is not None:
        total.add(play(draw(chosen.one)))
    else:
        for one in explore(seed, chosen.days, jobs=chosen.jobs, most_broken=chosen.broken):
            total.add(one)
    print(total)
    print(f"{time.monotonic() - began:.0f} s", flush=True)
    for history, why in total.broken:
        print(f"\nBROKEN by the history of seed {history.seed}: {why}", flush=True)
        small, because = (history, why) if chosen.no_shrink else smallest(history)
        print(as_test(small, because), flush=True)
    return 1 if total.broken else 0


if __name__ == "__main__":
    sys.exit(main())
