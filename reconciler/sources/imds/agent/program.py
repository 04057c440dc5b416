"""The node agent: publishes the scheduled events of this VM in an annotation of its Node.

If another annotation allows it, the agent also asks Azure to start an event.

It runs on every node. So it imports almost only the standard library (25 MiB in total), writes only changes,
and sends no heartbeat: its readiness probe shows whether it runs and IMDS answers.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from jobs.runtime.health import HealthServer, place_of
from jobs.runtime.log_line import Level, LogEvent, begin_log, write_events
from reconciler import USER_AGENT
from reconciler.model.azure import vm_name
from reconciler.model.errors import ClusterError, NoThread, ReconcilerError
from reconciler.model.event import Signal, Status
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.sources.imds import scheduled_events
from reconciler.sources.imds.agent.figures import Figures
from reconciler.sources.imds.agent.imds import DEFAULT_ADDRESS, Imds, ImdsError
from reconciler.sources.imds.agent.own_node import Access, OwnNode, OwnNodeClient, in_cluster

CHANCE = random.Random()
"""The random part of pauses. Threads do not use the shared generator, whose seed tests set."""

SPOT_INTERVAL = 1.0
"""Seconds. A spot VM has a notice of 30 seconds at most, and Azure recommends one request per second."""

INTERVAL = 5.0
"""Seconds. IMDS answers 5 requests per second and VM, for all its clients together."""

SILENCE = 60.0
"""Seconds after the last valid answer of IMDS until the agent is not ready; at least 3 intervals."""

LONGEST_IMDS_PAUSE = 10.0
"""The longest pause in seconds, unless IMDS asks for more. The notice may be only 30 seconds."""

LONGEST_WISH = 70.0
"""The longest Retry-After of IMDS that is respected, in seconds. Its status 410 ends after 70 seconds."""

LONGEST_STEP_PAUSE = 30.0
"""The longest pause in seconds after steps that failed unexpectedly."""

STUCK = 900.0
"""Seconds without a finished step after which the process is of no use. A step may take two minutes, and a
pause five."""

LONGEST_WAIT = 300.0
"""The longest time in seconds between two steps, whatever a server asks for."""

LONGEST_REASON = 500

LONGEST_API_PAUSE = 60.0
"""The longest pause in seconds between requests to the API server, which all agents use at once."""

REREAD = 300.0
"""Seconds between two reads of the Node, to see whether someone removed the annotation."""

LISTEN = 10.0
"""Seconds between two reads while an event is scheduled, because it may have to be acknowledged."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments from the command line and the environment."""

    access: Access
    node: str
    imds_address: str
    interval: float | None
    prefix: str
    listen: tuple[str, int] | None
    log_level: Level
    reread: float
    once: bool


class AgentEvent(StrEnum):
    """What a line of the log is about, besides the events of every process; docs/agent.md describes each."""

    WATCHING = "watching"
    PUBLISHED = "published"
    ACKNOWLEDGED = "acknowledged"
    IMDS_FAILED = "IMDS gives no good answer"
    IMDS_WORKS = "IMDS answers again"
    CANNOT_ACKNOWLEDGE = "cannot acknowledge"
    CANNOT_LISTEN = "cannot listen"
    CANNOT_READ_NODE = "cannot read the Node"
    CANNOT_PUBLISH = "cannot publish"
    CANNOT_TELL_VM = "cannot tell which VM this is"
    STEP_FAILED = "step failed"


class Health:
    """Whether the agent works. The loop writes it, the thread of probes reads it."""

    def __init__(self) -> None:
        """Start as not ready."""
        self.patience = SILENCE
        self.answered_at: float | None = None
        self.imds_says = "IMDS has not answered yet"
        self.api_problem = "the Node has not been read yet"
        self.step_problem = ""
        self.stepped_at: float | None = None
        self.figures = Figures()

    def why_stuck(self, now: float) -> str:
        """Return why a restart may help, empty if the loop runs; a service that is silent is no reason."""
        if self.stepped_at is None or now - self.stepped_at <= STUCK:
            return ""
        return f"no step has ended for {now - self.stepped_at:.0f} s"

    def why_not(self, now: float) -> str:
        """Return why the agent is not ready, empty if it is."""
        if self.step_problem:
            return f"the last step failed: {self.step_problem}"
        if self.api_problem:
            return self.api_problem
        if self.answered_at is None:
            return self.imds_says
        silent = now - self.answered_at
        if silent > self.patience:
            return f"IMDS has given no valid answer for {silent:.0f} s: {self.imds_says or 'no answer yet'}"
        return ""


class Agent:
    """The loop, one step at a time. Its state can be found again by a new process."""

    def __init__(
        self, arguments: Arguments, health: Health, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Start without state. `health` is updated by each step. `clock` is monotonic, in seconds."""
        agent = f"{USER_AGENT} agent"
        self._arguments = arguments
        self._health = health
        self._clock = clock
        self._imds = Imds(arguments.imds_address, user_agent=agent)
        self._client = OwnNodeClient(arguments.access, arguments.node, arguments.prefix, user_agent=agent)
        self._node: OwnNode | None = None
        self._vm: str | None = None
        self._document: dict[str, object] | None = None
        self._stale = True  # the annotation on the Node may differ from the saved one
        self._api_due = 0.0
        self._api_failures = 0
        self._reread_due = 0.0
        self._imds_failures = 0
        self._acknowledged: set[str] = set()
        self.failure: ReconcilerError | None = None

    def step(self) -> float:
        """Do what is due, and return the seconds until the next step."""
        started = self._clock()
        self.failure = None
        if started >= self._api_due and (self._stale or started >= self._reread_due):
            self._read_node()
        if self._node is None or self._vm is None:
            # Without the name of the VM no event can match, and outside Azure there is no IMDS.
            return max(0.05, self._api_due - self._clock())
        again = self._poll(started)
        self._publish()
        # Without an answer of IMDS, the event may have started already.
        if not self._imds_failures:
            self._acknowledge()
        return max(0.0, again - self._clock())

    def _interval(self) -> float:
        if self._arguments.interval is not None:
            return self._arguments.interval
        return SPOT_INTERVAL if self._node is not None and self._node.spot else INTERVAL

    def _read_node(self) -> None:
        try:
            if self._node is not None:
                now = self._client.read_annotations()
                if now.uid == self._node.uid:
                    self._node = replace(self._node, published=now.published, acknowledge=now.acknowledge)
                    self._know()
                    return
                # Another Node with the same name, maybe of another VM.
                self._node = None
            self._node = self._client.read()
        except ClusterError as error:
            self._api_failed(AgentEvent.CANNOT_READ_NODE, error)
            return
        self._vm = vm_name(self._node.provider_id)
        if self._vm is None:
            message = f"providerID {self._node.provider_id!r} is not that of an Azure VM"
            self._node = None
            self._api_failed(AgentEvent.CANNOT_TELL_VM, ReconcilerError(message))
            return
        self._health.patience = max(SILENCE, 3 * self._interval())
        self._know()
        _log(AgentEvent.WATCHING, node=self._arguments.node, vm=self._vm, intervalSeconds=self._interval())

    def _know(self) -> None:
        self._stale = False
        pause = min(self._arguments.reread, LISTEN) if self._awaits() else self._arguments.reread
        # Random, so that agents that start together do not send their requests together.
        self._reread_due = self._clock() + pause * CHANCE.uniform(0.9, 1.1)

    def _awaits(self) -> bool:
        """Return whether an event of this VM is scheduled that may still have to be acknowledged."""
        waiting = {one.id for one in self._reported() if one.status is Status.SCHEDULED and one.id}
        return not waiting <= self._acknowledged

    def _reported(self) -> tuple[Signal, ...]:
        """Return the events of this VM in the last valid answer of IMDS."""
        if self._document is None or self._vm is None:
            return ()
        return scheduled_events.signals(self._document, self._vm)

    def _poll(self, started: float) -> float:
        """Query IMDS, and return when to query it again (monotonic, like the start of the step `started`).

        After a valid answer, the interval counts from `started`. After a failure, the pause counts from the
        answer, because IMDS may have taken two minutes.
        """
        interval = self._interval()
        try:
            self._document = self._imds.scheduled_events()
        except ImdsError as error:
            self.failure = error
            self._imds_failures += 1
            self._health.figures.failed()
            if str(error) != self._health.imds_says:
                _log(AgentEvent.IMDS_FAILED, Level.ERROR, because=str(error))
            self._health.imds_says = str(error)
            pause = min(LONGEST_IMDS_PAUSE, interval * (1 << min(self._imds_failures - 1, 10)))
            wish = min(LONGEST_WISH, error.retry_after or 0.0)
            return self._clock() + max(interval, pause, wish)
        if self._imds_failures:
            _log(AgentEvent.IMDS_WORKS, failures=self._imds_failures)
        self._imds_failures = 0
        if self._awaits():
            self._reread_due = min(self._reread_due, self._clock() + LISTEN)
        self._health.imds_says = ""
        self._health.answered_at = self._clock()
        self._health.figures.answered(time.time(), len(self._reported()))
        return started + interval

    def _publish(self) -> None:
        """Write the events of this VM to the Node if they are not there yet, also after a failed query."""
        if self._stale or self._node is None or self._vm is None:
            return
        if self._document is None:
            self._api_went_well()
            return
        text = scheduled_events.to_annotation(self._document, self._vm)
        signals = scheduled_events.published(text).signals
        # No annotation means no events, so a cluster without maintenance gets no writes.
        if text == self._node.published or (self._node.published is None and not signals):
            self._api_went_well()
            return
        try:
            self._client.publish(self._node.uid, text)
        except ClusterError as error:
            self._health.figures.wrote(done=False)
            self._api_failed(AgentEvent.CANNOT_PUBLISH, error)
            return
        self._health.figures.wrote(done=True)
        self._node = replace(self._node, published=text)
        self._api_went_well()
        _log(
            AgentEvent.PUBLISHED,
            node=self._arguments.node,
            vm=self._vm,
            events=[f"{each.kind} {each.status} {each.id}".rstrip() for each in signals],
        )

    def _acknowledge(self) -> None:
        """Acknowledge the events that the Node names and that IMDS has as scheduled for this VM.

        The Node is read again right before, because the annotation may have been removed.
        """
        if self._stale or self._node is None or not self._due(self._node.acknowledge):
            return
        try:
            now = self._client.read_annotations()
        except ClusterError as error:
            self._api_failed(AgentEvent.CANNOT_READ_NODE, error)
            return
        if now.uid != self._node.uid:
            self._stale = True
            return
        self._node = replace(self._node, published=now.published, acknowledge=now.acknowledge)
        for event_id in self._due(now.acknowledge):
            try:
                self._imds.acknowledge(event_id)
            except ImdsError as error:
                self.failure = error
                _log(AgentEvent.CANNOT_ACKNOWLEDGE, Level.ERROR, id=event_id, because=str(error))
                continue
            self._acknowledged.add(event_id)
            _log(AgentEvent.ACKNOWLEDGED, node=self._arguments.node, vm=self._vm, id=event_id)

    def _due(self, annotation: str | None) -> tuple[str, ...]:
        """Return the IDs in the annotation that are not acknowledged yet."""
        if self._document is None or self._vm is None:
            return ()
        named = scheduled_events.from_acknowledgement(annotation)
        due = scheduled_events.to_be_started(self._document, self._vm, named)
        return tuple(one for one in due if one not in self._acknowledged)

    def _api_failed(self, what: AgentEvent, error: ReconcilerError) -> None:
        self.failure = error
        failure = f"{what}: {error}"
        if failure != self._health.api_problem:
            _log(what, Level.ERROR, because=str(error), node=self._arguments.node)
        self._health.api_problem = failure
        # A failed write may have succeeded on the server, so read the Node before the next write.
        self._stale = True
        pause = min(LONGEST_API_PAUSE, float(1 << min(self._api_failures, 10))) * CHANCE.uniform(0.5, 1.0)
        wish = error.retry_after if isinstance(error, ClusterError) else None
        self._api_failures += 1
        self._api_due = self._clock() + max(pause, min(wish or 0.0, LONGEST_WAIT))

    def _api_went_well(self) -> None:
        self._api_failures = 0
        self._api_due = 0.0
        self._health.api_problem = ""


def main(argv: list[str] | None = None) -> int:
    """Run until SIGTERM, or one step with --once. Return the exit code."""
    arguments = _arguments(sys.argv[1:] if argv is None else argv)
    begin_log(arguments.log_level)
    stop = threading.Event()

    def end(signum: int, frame: object) -> None:
        # Also raise, because a request to IMDS may take two minutes, and nothing needs a clean-up.
        stop.set()
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    health = Health()
    if arguments.listen is not None:
        try:
            _serve_probes(arguments.listen, health)
        except (OSError, NoThread) as error:
            address = place_of(arguments.listen)
            _log(AgentEvent.CANNOT_LISTEN, Level.ERROR, address=address, because=str(error))
            return 1
    agent = Agent(arguments, health)
    if arguments.once:
        agent.step()
        return agent.failure.exit_code if agent.failure else 0
    run(agent.step, health, stop)
    return 0


def run(step: Callable[[], float], health: Health, stop: threading.Event) -> None:
    """Run steps until `stop` is set. An unexpected error of a step is logged, and the probe shows it.

    MemoryError ends the process, so that the kubelet starts it again.
    """
    failures = 0
    health.stepped_at = time.monotonic()
    while not stop.is_set():
        try:
            pause = step()
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - no answer from outside may end the agent
            failures += 1
            reason = f"{type(error).__name__}: {error}"[:LONGEST_REASON]
            if reason != health.step_problem:
                # Imported here, because it takes memory that no agent needs that works.
                import traceback

                trace = traceback.format_exc(limit=-10)[-2000:]
                _log(AgentEvent.STEP_FAILED, Level.ERROR, because=reason, traceback=trace)
            health.step_problem = reason
            pause = min(LONGEST_STEP_PAUSE, float(1 << min(failures - 1, 10)))
        else:
            failures, health.step_problem = 0, ""
        health.stepped_at = time.monotonic()
        stop.wait(min(pause, LONGEST_WAIT))


def _arguments(argv: list[str]) -> Arguments:
    parser = argparse.ArgumentParser(prog="reconciler agent", description=__doc__.partition("\n")[0])
    environment = os.environ
    parser.add_argument(
        "--node", default=environment.get("NODE_NAME"), help="the name of this node (default: $NODE_NAME)"
    )
    parser.add_argument(
        "--imds-address",
        default=environment.get("IMDS_ADDRESS") or DEFAULT_ADDRESS,
        help="the URL of IMDS (default: $IMDS_ADDRESS, else %(default)s)",
    )
    parser.add_argument(
        "--interval",
        type=_seconds,
        help="seconds between two requests to IMDS (default: 1 on spot nodes, else 5)",
    )
    parser.add_argument(
        "--key-prefix", default=DEFAULT_PREFIX, help="prefix of the annotations (default: %(default)s)"
    )
    parser.add_argument(
        "--listen",
        type=_address,
        help="HOST:PORT that answers GET /readyz, /healthz and /metrics (default: none)",
    )
    parser.add_argument(
        "--log-level",
        type=Level,
        choices=list(Level),
        default=Level.INFO,
        help="the lowest level of the lines that are written (default: %(default)s)",
    )
    parser.add_argument(
        "--reread",
        type=_seconds,
        default=REREAD,
        help="seconds between two reads of the Node (default: %(default)s)",
    )
    parser.add_argument("--once", action="store_true", help="read once, publish, and exit")
    parser.add_argument("--server", help="the URL of the API server, outside a cluster")
    parser.add_argument("--token-file", type=Path, help="file with a bearer token for --server")
    parser.add_argument("--ca-file", type=Path, help="file with the certificate authority of --server")
    given = parser.parse_args(argv)
    if not given.node:
        parser.error("the name of the node is missing; set --node or NODE_NAME")
    if (given.server is None) != (given.token_file is None):
        parser.error("--server and --token-file require each other")
    try:
        Imds(given.imds_address)
        access = (
            in_cluster(environment)
            if given.server is None
            else Access(given.server, given.token_file, given.ca_file)
        )
        OwnNodeClient(access, given.node, given.key_prefix)
    except (ValueError, ReconcilerError) as error:
        parser.error(str(error))
    return Arguments(
        access=access,
        node=given.node,
        imds_address=given.imds_address,
        interval=given.interval,
        prefix=given.key_prefix,
        listen=given.listen,
        log_level=given.log_level,
        reread=given.reread,
        once=given.once,
    )


def _seconds(text: str) -> float:
    seconds = float(text.removesuffix("s"))
    if not 0 < seconds < float("inf"):
        raise ValueError(text)
    return seconds


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def _serve_probes(address: tuple[str, int], health: Health) -> None:
    """Answer probes in a thread, which ends with the process. OSError if the address can't be used."""
    server = HealthServer(
        address,
        {
            "/healthz": lambda: health.why_stuck(time.monotonic()),
            "/readyz": lambda: health.why_not(time.monotonic()),
        },
        documents={"/metrics": health.figures.document},
        ok="ready",
        report=lambda error: _log(
            LogEvent.PROBE_FAILED, Level.ERROR, because=f"{type(error).__name__}: {error}"
        ),
    )
    _log(LogEvent.LISTENING, address=server.place)
    server.__enter__()


def _log(event: AgentEvent | LogEvent, level: Level = Level.INFO, **fields: object) -> None:
    write_events(event, fields, level=level)


if __name__ == "__main__":
    sys.exit(main())
