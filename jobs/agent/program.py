"""The node agent: publishes what IMDS says about this VM as an annotation of its own Node, and tells Azure
that an event may start where another annotation says so.

It runs on every node, so it imports the standard library and next to nothing else (25 MiB in all), writes
only what has changed, and sends no heartbeat: whether it lives and IMDS answers is told by its readiness.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import sys
import threading
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from reconciler import USER_AGENT
from reconciler.clients.agent.imds import DEFAULT_ADDRESS, Imds, ImdsError
from reconciler.clients.agent.own_node import Access, OwnNode, OwnNodeClient, in_cluster
from reconciler.errors import ClusterError, ReconcilerError
from reconciler.model.event import Status
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.sources import imds as scheduled_events

SPOT_INTERVAL = 1.0
"""Seconds. A spot VM is told of its end 30 seconds before it at best; Azure recommends once a second."""

INTERVAL = 5.0
"""Seconds. IMDS serves 5 requests a second per VM, all askers together, and others ask too."""

SILENCE = 60.0
"""Seconds after IMDS's last good answer until the agent calls itself not ready; at least 3 intervals."""

LONGEST_IMDS_PAUSE = 10.0
"""Seconds between two tries at most, unless IMDS itself asks for more: a notice may be of 30 seconds."""

LONGEST_WISH = 70.0
"""Seconds that IMDS may ask us to stay away: its 410 is over after 70."""

LONGEST_API_PAUSE = 60.0
"""Seconds between two tries at the API server, which all agents of the cluster try at once."""

REREAD = 300.0
"""Seconds between two looks at our own Node: whether somebody took the annotation away."""

LISTEN = 10.0
"""Seconds between two looks while an event is about to come, in which we may be told to acknowledge it."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """What the command line and the environment say."""

    access: Access
    node: str
    imds_address: str
    interval: float | None
    prefix: str
    listen: tuple[str, int] | None
    reread: float
    once: bool


class Health:
    """Whether the agent does its work; written by the loop, read by the readiness thread."""

    def __init__(self) -> None:
        """Start as not ready: nothing has been seen yet."""
        self.patience = SILENCE
        self.answered_at: float | None = None
        self.imds_says = "IMDS has not answered yet"
        self.api_says = "the Node has not been read yet"

    def why_not(self, now: float) -> str:
        """Return why the agent is not ready, empty if it is."""
        if self.api_says:
            return self.api_says
        if self.answered_at is None:
            return self.imds_says
        silent = now - self.answered_at
        if silent > self.patience:
            return f"IMDS has given no good answer for {silent:.0f} s: {self.imds_says or 'no answer yet'}"
        return ""


class Agent:
    """The loop's memory, one step at a time; holds nothing that a new process could not find again."""

    def __init__(self, arguments: Arguments, health: Health) -> None:
        """Take what to do, and where to say how it goes."""
        agent = f"{USER_AGENT} agent"
        self._arguments = arguments
        self._health = health
        self._imds = Imds(arguments.imds_address, user_agent=agent)
        self._client = OwnNodeClient(arguments.access, arguments.node, arguments.prefix, user_agent=agent)
        self._node: OwnNode | None = None
        self._vm: str | None = None
        self._document: dict[str, object] | None = None
        self._stale = True  # what is on the Node may not be what we remember of it
        self._api_due = 0.0
        self._api_failures = 0
        self._reread_due = 0.0
        self._imds_failures = 0
        self._acknowledged: set[str] = set()
        self.failure: ReconcilerError | None = None

    def step(self) -> float:
        """Do what is due and return the seconds until the next step."""
        started = time.monotonic()
        self.failure = None
        if started >= self._api_due and (self._stale or started >= self._reread_due):
            self._read_node()
        if self._node is None or self._vm is None:
            # Without the VM's name no event is ours, and off Azure nobody must be asked.
            return max(0.05, self._api_due - time.monotonic())
        again = self._poll(started)
        self._publish()
        # What IMDS does not tell now may have started since.
        if not self._imds_failures:
            self._acknowledge()
        return max(0.0, again - time.monotonic())

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
                # Another Node under the same name: another VM, maybe.
                self._node = None
            self._node = self._client.read()
        except ClusterError as error:
            self._api_failed("cannot read the Node", error)
            return
        self._vm = scheduled_events.vm_name(self._node.provider_id)
        if self._vm is None:
            told = f"providerID {self._node.provider_id!r} is not that of a VM of Azure"
            self._node = None
            self._api_failed("cannot tell which VM this is", ReconcilerError(told))
            return
        self._health.patience = max(SILENCE, 3 * self._interval())
        self._know()
        _log("watching", node=self._arguments.node, vm=self._vm, interval=self._interval())

    def _know(self) -> None:
        self._stale = False
        pause = min(self._arguments.reread, LISTEN) if self._awaits() else self._arguments.reread
        # Spread, so that the agents of a cluster that were started together don't ask together.
        self._reread_due = time.monotonic() + pause * random.uniform(0.9, 1.1)

    def _awaits(self) -> bool:
        """Whether an event of ours is scheduled, of which somebody may say that it may start."""
        if self._document is None or self._vm is None:
            return False
        told = scheduled_events.signals(self._document, self._vm)
        waiting = {one.id for one in told if one.status is Status.SCHEDULED and one.id}
        return not waiting <= self._acknowledged

    def _poll(self, started: float) -> float:
        """Ask IMDS in a step that began at `started` and return the moment to ask it again, both monotonic.

        Good answers come at the interval's pace. What IMDS asks for, and the pause after a failure, count
        from its answer: it may have taken two minutes.
        """
        interval = self._interval()
        try:
            self._document = self._imds.scheduled_events()
        except ImdsError as error:
            self.failure = error
            self._imds_failures += 1
            if str(error) != self._health.imds_says:
                _log("IMDS gives no good answer", because=str(error))
            self._health.imds_says = str(error)
            pause = min(LONGEST_IMDS_PAUSE, interval * (1 << min(self._imds_failures - 1, 10)))
            wish = min(LONGEST_WISH, error.retry_after or 0.0)
            return time.monotonic() + max(interval, pause, wish)
        if self._imds_failures:
            _log("IMDS answers again", after=self._imds_failures)
        self._imds_failures = 0
        if self._awaits():
            self._reread_due = min(self._reread_due, time.monotonic() + LISTEN)
        self._health.imds_says = ""
        self._health.answered_at = time.monotonic()
        return started + interval

    def _publish(self) -> None:
        """Write this VM's events to the Node where they are not there yet; also after a poll that failed."""
        if self._stale or self._node is None or self._vm is None:
            return
        if self._document is None:
            self._api_went_well()
            return
        text = scheduled_events.to_annotation(self._document, self._vm)
        signals = scheduled_events.from_annotation(text)
        # No annotation and no events say the same: a cluster without maintenance is never written to.
        if text == self._node.published or (self._node.published is None and not signals):
            self._api_went_well()
            return
        try:
            self._client.publish(self._node.uid, text)
        except ClusterError as error:
            self._api_failed("cannot publish", error)
            return
        self._node = replace(self._node, published=text)
        self._api_went_well()
        _log(
            "published",
            node=self._arguments.node,
            vm=self._vm,
            events=[f"{each.kind} {each.status} {each.id}".rstrip() for each in signals],
        )

    def _acknowledge(self) -> None:
        """Tell Azure which events may start: those that our Node names, and IMDS has as scheduled for us.

        The Node is read once more right before: whoever wrote the annotation may have taken it back.
        """
        if self._stale or self._node is None or not self._due(self._node.acknowledge):
            return
        try:
            now = self._client.read_annotations()
        except ClusterError as error:
            self._api_failed("cannot read the Node", error)
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
                _log("cannot acknowledge", event=event_id, because=str(error))
                continue
            self._acknowledged.add(event_id)
            _log("acknowledged", node=self._arguments.node, vm=self._vm, event=event_id)

    def _due(self, annotation: str | None) -> tuple[str, ...]:
        """Return the ids that the annotation names and that Azure was not told of yet."""
        if self._document is None or self._vm is None:
            return ()
        named = scheduled_events.from_acknowledgement(annotation)
        due = scheduled_events.to_be_started(self._document, self._vm, named)
        return tuple(one for one in due if one not in self._acknowledged)

    def _api_failed(self, what: str, error: ReconcilerError) -> None:
        self.failure = error
        told = f"{what}: {error}"
        if told != self._health.api_says:
            _log(what, because=str(error), node=self._arguments.node)
        self._health.api_says = told
        # A write that failed may have been done all the same: what is there is read before the next.
        self._stale = True
        pause = min(LONGEST_API_PAUSE, float(1 << min(self._api_failures, 10))) * random.uniform(0.5, 1.0)
        wish = error.retry_after if isinstance(error, ClusterError) else None
        self._api_failures += 1
        self._api_due = time.monotonic() + max(pause, wish or 0.0)

    def _api_went_well(self) -> None:
        self._api_failures = 0
        self._api_due = 0.0
        self._health.api_says = ""


def main(argv: list[str] | None = None) -> int:
    """Run until SIGTERM, or, with --once, for one good look; return the exit code."""
    arguments = _arguments(sys.argv[1:] if argv is None else argv)
    stop = threading.Event()

    def end(signum: int, frame: object) -> None:
        # Raised as well as set: a wait for IMDS may take two minutes, and nothing here needs tidying up.
        stop.set()
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    health = Health()
    if arguments.listen is not None:
        try:
            _serve_readiness(arguments.listen, health)
        except OSError as error:
            _log("cannot listen", address=":".join(map(str, arguments.listen)), because=str(error))
            return 1
    agent = Agent(arguments, health)
    while not stop.is_set():
        pause = agent.step()
        if arguments.once:
            return agent.failure.exit_code if agent.failure else 0
        stop.wait(pause)
    return 0


def _arguments(argv: list[str]) -> Arguments:
    parser = argparse.ArgumentParser(prog="reconciler agent", description=__doc__.partition("\n")[0])
    environment = os.environ
    parser.add_argument("--node", default=environment.get("NODE_NAME"), help="this node (NODE_NAME)")
    parser.add_argument(
        "--imds-address",
        default=environment.get("IMDS_ADDRESS") or DEFAULT_ADDRESS,
        help="URL of IMDS (IMDS_ADDRESS; %(default)s)",
    )
    parser.add_argument(
        "--interval",
        type=_seconds,
        help="seconds between two questions to IMDS (1 on spot nodes, 5 elsewhere)",
    )
    parser.add_argument("--key-prefix", default=DEFAULT_PREFIX, help="of the annotations (%(default)s)")
    parser.add_argument("--listen", type=_address, help="HOST:PORT that answers GET /readyz")
    parser.add_argument(
        "--reread", type=_seconds, default=REREAD, help="seconds between two looks at the Node (%(default)s)"
    )
    parser.add_argument("--once", action="store_true", help="look once, publish, and end")
    parser.add_argument("--server", help="URL of the API server, outside of a cluster")
    parser.add_argument("--token-file", type=Path, help="bearer token for --server")
    parser.add_argument("--ca-file", type=Path, help="certificate authority of --server")
    given = parser.parse_args(argv)
    if not given.node:
        parser.error("which node is this? --node or NODE_NAME")
    if (given.server is None) != (given.token_file is None):
        parser.error("--server and --token-file go together")
    try:
        Imds(given.imds_address)
        access = (
            in_cluster(environment)
            if given.server is None
            else Access(given.server, given.token_file, given.ca_file)
        )
    except (ValueError, ReconcilerError) as error:
        parser.error(str(error))
    return Arguments(
        access=access,
        node=given.node,
        imds_address=given.imds_address,
        interval=given.interval,
        prefix=given.key_prefix,
        listen=given.listen,
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


def _serve_readiness(address: tuple[str, int], health: Health) -> None:
    """Answer GET /readyz in a thread; a socket and no http.server, which would take 1 MiB more."""
    listener = socket.create_server(address)
    _log("listening", address="{}:{}".format(*listener.getsockname()[:2]))
    threading.Thread(target=_answer_probes, args=(listener, health), name="readiness", daemon=True).start()


def _answer_probes(listener: socket.socket, health: Health) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:  # the caller has gone already, or no file is left to open: neither is for ever
            time.sleep(0.1)
            continue
        with connection:
            try:
                connection.settimeout(2)
                request = connection.recv(1024)
                connection.sendall(_readiness(request, health.why_not(time.monotonic())))
            except OSError:
                continue


def _readiness(request: bytes, why_not: str) -> bytes:
    if not request.startswith((b"GET /readyz ", b"HEAD /readyz ")):
        status, text = "404 Not Found", "only /readyz"
    elif why_not:
        status, text = "503 Service Unavailable", why_not
    else:
        status, text = "200 OK", "ready"
    body = f"{text}\n".encode()
    headers = f"Content-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close"
    return f"HTTP/1.1 {status}\r\n{headers}\r\n\r\n".encode() + body


def _log(message: str, **facts: object) -> None:
    line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "message": message, **facts}
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    sys.exit(main())
