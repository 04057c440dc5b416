"""What planning ahead is worth: ten nodes, ten days, one planned reboot a day, and forty short notices.

Run it with `python -m tests.bench.ahead`. It plays whole passes on the simulation, with a budget of one
place, and prints for each way of starting how many short notices and reboots met a drained node, and how many
node-hours stood empty. It measures no time, so a busy machine prints the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from random import Random

from reconciler.model.event import Kind
from reconciler.model.values import replace
from reconciler.simulation.platform import Reporter, VmEvent
from tests.laws.histories import History
from tests.support import builders
from tests.support.builders import NOW
from tests.support.worlds import world_of

NODES, DAYS, NOTICES = 10, 10, 40
NOTICE, LASTS = timedelta(minutes=15), timedelta(minutes=10)
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one run: short notices and reboots in time, and the node-hours that stood empty."""

    notices: int
    reboots: int
    empty: float


def play(policy: str, announced: timedelta, seed: int, days: int = DAYS) -> Result:
    """Play the days by settings (YAML), with reboots that are announced so long ahead; a seed is one play."""
    history = _world(policy)
    planned, short = _events(seed, days)
    clock, met = history.world.clock, dict[VmEvent, bool]()

    def look(event: VmEvent) -> None:
        met[event] = history.cluster.nodes[event.node].unschedulable

    for event, notice in (*((one, announced) for one in planned), *((one, NOTICE) for one in short)):
        clock.at(event.not_before - notice, partial(history.world.platform.announce, event))
        clock.at(event.not_before - timedelta(seconds=1), partial(look, event))
    empty = _run(history, NOW + timedelta(days=days + 2))
    return Result(sum(met[one] for one in short), sum(met[one] for one in planned), empty / 3600)


def _world(policy: str) -> History:
    nodes = []
    for number in range(NODES):
        node = builders.on_vm(builders.node(f"n{number}", conditions=(builders.quiet(),)), number)
        nodes.append(replace(node, boot_id="boot-1"))
    return History(world_of(nodes), builders.settings(policy))


def _events(seed: int, days: int) -> tuple[list[VmEvent], list[VmEvent]]:
    """Return the reboots, each on another node, and the short notices, at random moments on random nodes."""
    random = Random(seed)
    # The first reboot has a day's notice as well.
    planned = [_reboot(number, (number + 1) * DAY + timedelta(hours=11)) for number in range(days)]
    short = [
        _reboot(random.randrange(NODES), timedelta(seconds=random.randrange(3600, days * 86400)))
        for _ in range(NOTICES * days // DAYS)
    ]
    return planned, short


def _reboot(node: int, after: timedelta) -> VmEvent:
    return VmEvent(
        f"n{node}",
        Kind.REBOOT,
        NOW + after,
        seconds=int(LASTS.total_seconds()),
        down=LASTS / 2,
        lasts=LASTS,
        reported_by=Reporter.AGENT,
    )


def _run(history: History, end: datetime) -> float:
    """Run passes whenever something changes; return the seconds for which nodes stood empty."""
    empty = 0.0
    while history.now < end:
        writes = history.api.writes
        plan, _ = history.look()
        if history.api.writes > writes:
            continue
        changes = (plan.next_change, history.world.clock.next(), end)
        later = min(one for one in changes if one is not None and one > history.now)
        closed = sum(node.unschedulable for node in history.cluster.nodes.values())
        empty += closed * (later - history.now).total_seconds()
        history.wait(later - history.now)
    return empty


def rows(seed: int) -> Iterator[tuple[str, Result]]:
    """Yield each way of starting, with what came of it."""
    budget = "budget: {maxUnavailable: 10%}"
    at_once = f"{budget}\nevents: {{Reboot: {{start: Early}}}}"
    yield "as soon as it may (start: Early)", play(at_once, DAY, seed)
    yield "planned (the default)", play(budget, DAY, seed)
    yield "announced half an hour ahead", play(budget, timedelta(minutes=30), seed)


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(prog="python -m tests.bench.ahead", description=__doc__)
    arguments.add_argument("--seed", type=int, default=1, help="which short notices come (default: 1)")
    seed: int = arguments.parse_args().seed
    print(f"| start | short notices in time, of {NOTICES} | reboots in time, of {DAYS} | node-hours empty |")
    print("|---|---|---|---|")
    for name, result in rows(seed):
        print(f"| {name} | {result.notices} | {result.reboots} | {result.empty:.0f} |")


if __name__ == "__main__":
    main()
