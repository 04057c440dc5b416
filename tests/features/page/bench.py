"""What the page of a large fleet costs: its size, and the CPU time that making it takes.

Run it with `python -m tests.features.page.bench`. The time depends on the machine; the size does not.
"""

from __future__ import annotations

import time

from reconciler.features.page.html import as_html
from tests.features.page.scene import facts

ROUNDS = 5
FLEETS = ((100, 10), (1000, 100), (5000, 345))


def main() -> None:
    """Print a row for each fleet. The first page of a process also loads the template."""
    print("| nodes | cases | KiB | first page, s of CPU | next page, s of CPU |")
    print("|---|---|---|---|---|")
    for nodes, cases in FLEETS:
        found = facts(nodes, cases)
        times = []
        for _ in range(ROUNDS):
            begin = time.process_time()
            size = len(as_html(found).encode())
            times.append(time.process_time() - begin)
        print(f"| {nodes} | {cases} | {size / 1024:.0f} | {times[0]:.2f} | {min(times[1:]):.2f} |")


if __name__ == "__main__":
    main()
