"""The protocols on a real API server: each returns rows of the table."""

from __future__ import annotations

import math
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import product
from random import Random, random

from tests.bench import bare
from tests.bench.scale.cluster import LAUNCH, Cluster, Seen
from tests.support.controlplane.fill import condition, patch_conditions, vm_event
from tests.support.controlplane.processes import wait_for

WRITERS = 16
"""Of the bare loop; more are not faster on two cores."""


@dataclass(frozen=True, slots=True)
class Row:
    """What a protocol came to. `published` is NVSentinel's figure where nothing else is named."""

    protocol: str
    published: str
    aim: str
    measured: str
    holds: bool


def percentile(values: Sequence[float], share: float) -> float:
    """Return the least value that so large a share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def burst(cluster: Cluster, counts: Sequence[int], rounds: int) -> list[Row]:
    """All notices in one go on nodes without pods, in turn with a loop that only patches nodes that get them.

    Both count from the first notice. The loop knows the nodes, begins after the last, and runs again later.
    """
    published = {100: ("1.44 s", 0.8), 600: ("9.24 s, 65 a second", 4.0)}
    rows = []
    for count in counts:
        ours, loop, quiet, wrong = list[float](), list[float](), list[float](), set[str]()
        for _ in range(rounds):
            cluster.empty()
            nodes, other = cluster.nodes("told", count), cluster.nodes("bare", count)
            notices, to_loop = cluster.told("told", nodes), cluster.told("bare", other)
            with cluster.serving(count) as (_serve, seen):
                began, _ = cluster.tell(notices)
                seen.wait_for("cordons", nodes, seen.cordoned)
                ours.append(max(seen.cordoned.values()) - began)
                time.sleep(3)
                wrong.add(seen.wrong(nodes))
            loop.append(_looped(cluster, other, to_loop))
            # As they were, and nothing is going on.
            cluster.tell(to_loop)
            time.sleep(3)
            quiet.append(_looped(cluster, other, {}))
        theirs, aim = published.get(count, ("–", count / 150))
        took, looped = statistics.median(ours), statistics.median(loop)
        measured = f"{took:.2f} s, {count / took:.0f} a second, {took / looped:.2f} of the loop"
        measured += f" ({took / statistics.median(quiet):.2f} when all is quiet){_exact(wrong)}"
        holds = took <= aim and took / looped <= 1.5 and wrong == {""}
        what = f"{count} notices in one go: last cordon"
        rows.append(Row(what, theirs, f"{aim:.1f} s, 1.5 of the loop", measured, holds))
    return rows


def _looped(cluster: Cluster, nodes: list[str], notices: dict[str, str]) -> float:
    with Seen(cluster.plane) as seen:
        began, _ = cluster.tell(notices)
        bare.cordon(cluster.plane, nodes, WRITERS)
        seen.wait_for("cordons", nodes, seen.cordoned)
        return max(seen.cordoned[node] for node in nodes) - began


@dataclass(frozen=True, slots=True)
class Drained:
    """Seconds from the notices to each deletion and to the last cordon; what `serve` took for it."""

    took: list[float]
    cordon: float
    cpu: float
    peak: float
    requests: Counter[str]
    wrong: set[str]


def drained(cluster: Cluster, count: int, pods: int, grace: int = 0) -> Drained:
    """Drain so many nodes at once, beside some that are not to be touched."""
    cluster.empty()
    told, other = cluster.nodes("told", count, pods, grace), cluster.nodes("other", max(count // 10, 2), 1)
    notices = cluster.told("told", told)
    leaving = [f"{node}-{number}" for node, number in product(told, range(pods))]
    with cluster.serving(count) as (serve, seen):
        before, since = serve.cpu, datetime.now(UTC)
        began, _ = cluster.tell(notices)
        seen.wait_for("deleted pods", leaving, seen.deleted)
        seen.wait_for("cordons", told, seen.cordoned)
        # What follows a drain: its record, its Event, and the look at what is left.
        time.sleep(3)
        lost = sum(f"{node}-0" in seen.deleted for node in other)
        return Drained(
            [seen.deleted[pod] - began for pod in leaving],
            max(seen.cordoned.values()) - began,
            serve.cpu - before,
            serve.peak,
            cluster.requests(since),
            {seen.wrong(told), f"{lost} pods of other nodes" if lost else ""},
        )


def drains(cluster: Cluster, count: int) -> list[Row]:
    """All drains at once, one pod without a grace period each."""
    done = drained(cluster, count, 1)
    half, most = percentile(done.took, 0.5), percentile(done.took, 0.99)
    measured = f"{half:.2f} s, {most:.2f} s, {done.peak:.0f} MiB; {done.cpu:.1f} CPU s"
    measured += f", last cordon after {done.cordon:.1f} s{_exact(done.wrong)}; {_listed(done.requests)}"
    what = f"{count} drains at once, one pod each: P50, P99 to the deletion; peak"
    holds = half <= 3 and most <= 6 and done.peak <= 200
    return [Row(what, "52.06 s", "3 s, 6 s, 200 MiB", measured, holds and done.wrong == {""})]


def exact(cluster: Cluster, nodes: int, true: int, decoys: int, later: float) -> list[Row]:
    """True notices among others of the same shape, for which no node is drained."""
    cluster.empty()
    cluster.nodes("other", nodes - true - decoys)
    told, decoy = cluster.nodes("told", true), cluster.nodes("decoy", decoys)
    notices = [*cluster.told("told", told).items(), *cluster.told("decoy", decoy, "Freeze").items()]
    Random(1).shuffle(notices)
    with cluster.serving(true) as (serve, seen):
        began, ended = cluster.tell(dict(notices))
        seen.wait_for("cordons", told, seen.cordoned)
        last = max(seen.cordoned.values())
        time.sleep(later)
        wrong = {seen.wrong(told)}
        measured = f"{last - ended:.2f} s after the last of them ({last - began:.2f} s after the first)"
        measured += f"{_exact(wrong)} {later:.0f} s later; {serve.peak:.0f} MiB"
        holds = last - ended <= 2 and wrong == {""}
    what = f"{true} true notices among {decoys} decoys, {nodes} nodes"
    return [Row(what, "exact within 45 s", "exact 2 s after the last", measured, holds)]


def restarts(cluster: Cluster, count: int, places: int, rounds: int) -> list[Row]:
    """Fewer places than notices, and of two instances the one that leads is killed in mid-burst."""
    took, wrong = list[float](), set[str]()
    for number in range(rounds):
        cluster.empty()
        cluster.nodes("other", count)
        reported = cluster.nodes("told", count)
        notices = cluster.told("told", reported)
        with cluster.serving(places) as (leader, seen), cluster.instance(places), ExitStack() as restarted:
            began, _ = cluster.tell(notices)
            some = places * (number + 1) // (rounds + 1)
            wait_for("cordons", partial(_has, seen.cordoned, some), every=0.01)
            leader.kill()
            restarted.enter_context(cluster.instance(places))
            wait_for("all cordons", partial(_has, seen.cordoned, places), seconds=120)
            took.append(max(seen.cordoned.values()) - began)
            # Another pass, and a relist.
            time.sleep(20)
            extra = len(seen.cordoned) - places
            wrong |= {seen.wrong(seen.cordoned.keys() & set(reported)), f"{extra} too many" if extra else ""}
    measured = f"{statistics.median(took):.0f} s{_exact(wrong)}"
    what = f"{count} notices, {places} places, the leader killed in mid-burst: last cordon"
    return [Row(what, "–", "exact", measured, wrong == {""})]


def _has(nodes: Collection[str], count: int) -> bool:
    return len(nodes) >= count


def big(cluster: Cluster, count: int, pods: int) -> list[Row]:
    """Drains of many pods with a grace period of 30 s, beside a loop that only evicts."""
    done = drained(cluster, count, pods, 30)
    cluster.empty()
    nodes = cluster.nodes("bare", count, pods, 30)
    leaving = [f"{node}-{number}" for node, number in product(nodes, range(pods))]
    with Seen(cluster.plane) as seen:
        began = time.monotonic()
        bare.evict(cluster.plane, leaving, WRITERS)
        seen.wait_for("deleted pods", leaving, seen.deleted)
        loop = max(seen.deleted.values()) - began
    took = max(done.took)
    measured = f"{took:.0f} s, {took / loop:.2f} of the loop, {done.peak:.0f} MiB, {done.cpu:.0f} CPU s"
    holds = (took <= 240 or took <= 1.25 * loop) and done.wrong == {""}
    what = f"{count} nodes of {pods} pods"
    return [Row(what, "39 min", "4 min, or 1.25 of the loop", f"{measured}{_exact(done.wrong)}", holds)]


def requests(cluster: Cluster, count: int, pods: int) -> list[Row]:
    """What a drained node costs the API server."""
    done = drained(cluster, count, pods, 1)
    each, aim = done.requests.total() / count, 4 + 1.15 * pods
    measured = f"{each:.1f}: {_listed(done.requests, count)}{_exact(done.wrong)}"
    what = f"requests for each drained node of {pods} pods"
    holds = each <= aim and done.wrong == {""}
    return [Row(what, f"{3.7 + 3.0 * pods:.1f}", f"{aim:.1f}", measured, holds)]


def twenty(cluster: Cluster, count: int, pods: int, busy: int) -> list[Row]:
    """A few drains of many pods, alone and beside processes that take every processor."""
    rows = []
    alone = 700.0
    for others in (0, busy):
        hogs = [subprocess.Popen([*LAUNCH, sys.executable, "-c", "while True: pass"]) for _ in range(others)]
        try:
            done = drained(cluster, count, pods, 1)
        finally:
            for hog in hogs:
                hog.kill()
                hog.wait()
        asked = done.requests.total()
        measured = f"{asked} requests, {done.cpu:.1f} CPU s, {done.peak:.0f} MiB, {max(done.took):.1f} s"
        holds = asked <= alone and done.wrong == {""} and (others or (done.cpu <= 2 and done.peak <= 90))
        what = f"{count} nodes of {pods} pods" + (f" beside {others} busy processes" if others else "")
        published = "maintenance-controller: 939 requests, 1.4 CPU s, 68 MB"
        aim = "as many requests as alone (5 % more)" if others else "700 requests, 2 CPU s, 90 MB"
        rows.append(Row(what, published, aim, f"{measured}{_exact(done.wrong)}", bool(holds)))
        alone = 1.05 * asked
    return rows


def steady(cluster: Cluster, nodes: int, a_second: float, seconds: float) -> list[Row]:
    """One notice after the other, each by a request of its own."""
    cluster.empty()
    told = cluster.nodes("told", round(a_second * seconds))
    cluster.nodes("other", nodes - len(told))
    notice = vm_event("Reboot", datetime.now(UTC) + timedelta(hours=4))
    sent = dict[str, float]()
    with cluster.serving(len(told)) as (_serve, seen):
        due = time.monotonic()
        for node in told:
            due += 1 / a_second
            time.sleep(max(0.0, due - time.monotonic()))
            sent[node] = time.monotonic()
            patch_conditions(cluster.plane.api, node, notice)
        seen.wait_for("cordons", told, seen.cordoned)
        took = [seen.cordoned[node] - sent[node] for node in told]
        wrong = {seen.wrong(told)}
    half, most = (1000 * percentile(took, share) for share in (0.5, 0.99))
    what = f"{a_second} notices a second, {nodes} nodes: P50, P99 to the cordon"
    measured = f"{half:.0f} ms, {most:.0f} ms{_exact(wrong)}"
    holds = half <= 50 and most <= 200 and wrong == {""}
    return [Row(what, "26 ms, 165 ms", "50 ms, 200 ms", measured, holds)]


def idle(cluster: Cluster, nodes: int, seconds: float) -> list[Row]:
    """Nothing but heartbeats, one in five minutes of each node."""
    cluster.empty()
    beating, over = cluster.nodes("other", nodes), threading.Event()
    beats = threading.Thread(target=cluster.beat, args=(beating, nodes / 300, over))
    with cluster.serving(nodes) as (serve, seen):
        beats.start()
        time.sleep(min(20.0, seconds))
        before, since = serve.cpu, datetime.now(UTC)
        time.sleep(seconds)
        load = 100 * (serve.cpu - before) / seconds
        asked = cluster.requests(since)
        over.set()
        beats.join()
        wrong, peak = {seen.wrong(())}, serve.peak
    listed, a_minute = asked["list nodes"], asked.total() * 60 / seconds
    measured = f"{load:.1f} %, {listed} pages of lists, {a_minute:.0f} requests a minute, {peak:.0f} MiB"
    what = f"idle with heartbeats, {nodes} nodes: of a core"
    holds = load <= 2 and not listed and wrong == {""}
    return [Row(what, "–", "2 %, no list", f"{measured}{_exact(wrong)}", holds)]


def latency(cluster: Cluster, nodes: int, rounds: int) -> list[Row]:
    """From a change of one node to its state and its cordon."""
    bad = condition("Bad", "True", "Test", "")
    causes: dict[str, Callable[[str], object]] = {
        "label": partial(_mark, cluster, "labels"),
        "annotation": partial(_mark, cluster, "annotations"),
        "condition": lambda node: patch_conditions(cluster.plane.api, node, bad),
    }
    rows = []
    for cause, change in causes.items():
        cluster.empty()
        made = cluster.nodes("other", nodes)
        states, cordons = list[float](), list[float]()
        with cluster.serving(nodes, _workflow(cause)) as (_serve, seen):
            seen.follow_states()
            for node in made[:rounds]:
                time.sleep(1 + random())
                began = time.monotonic()
                change(node)
                seen.wait_for("cordons", [node], seen.cordoned)
                states.append(seen.states[node] - began)
                cordons.append(seen.cordoned[node] - began)
            wrong = {seen.wrong(made[:rounds])}
        state, cordon = 1000 * statistics.median(states), 1000 * statistics.median(cordons)
        what = f"a {cause} changes on one of {nodes} nodes: state, cordon"
        measured = f"{state:.0f} ms, {cordon:.0f} ms{_exact(wrong)}"
        published = "maintenance-controller: 23 ms, 53 ms"
        holds = state <= 30 and cordon <= 60 and wrong == {""}
        rows.append(Row(what, published, "30 ms, 60 ms", measured, holds))
    return rows


def _mark(cluster: Cluster, what: str, node: str) -> None:
    cluster.plane.api.patch("nodes", node, {"metadata": {what: {"example.com/reboot": "true"}}})


_CHECKS = {
    "label": "{type: hasLabel, name: wanted, config: {key: example.com/reboot, value: 'true'}}",
    "annotation": "{type: hasAnnotation, name: wanted, config: {key: example.com/reboot, value: 'true'}}",
    "condition": "{type: condition, name: wanted, config: {type: Bad, status: 'True'}}",
}


def _workflow(cause: str) -> str:
    return f"""\
mode: Enforce
budget: {{{{maxUnavailable: 100%}}}}
profiles:
  intervals: {{{{requeue: 1m}}}}
  instances:
    check: [{_CHECKS[cause].replace("{", "{{").replace("}", "}}")}]
    trigger: [{{{{type: drain, name: drain}}}}, {{{{type: uncordon, name: uncordon}}}}]
  profiles:
  - name: default
    operational: {{{{transitions: [{{{{check: wanted, next: maintenance-required}}}}]}}}}
    maintenance-required: {{{{transitions: [{{{{check: wanted, next: in-maintenance}}}}]}}}}
    in-maintenance:
      enter: drain
      transitions: [{{{{check: "!wanted", trigger: uncordon, next: operational}}}}]
"""


def _exact(wrong: set[str]) -> str:
    found = " / ".join(sorted(wrong - {""}))
    return f", NOT EXACT: {found}" if found else ", exact"


def _listed(requests: Counter[str], of: int = 1) -> str:
    return ", ".join(f"{count / of:.3g} {what}" for what, count in requests.most_common())
