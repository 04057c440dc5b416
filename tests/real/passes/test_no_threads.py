"""Each kind of thread can't start once: as `serve` starts, later, and at other settings. So with files.

A node is cordoned and drained all the same, its hook is asked, people and owners get a message.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from tests.real.forks import DEFAULTS, NO_FILES, NO_THREADS
from tests.real.passes.processes import ENFORCE, Programs, Running
from tests.real.passes.scene import Scene
from tests.support.fakes.files import FAILED
from tests.support.fakes.threads import kinds
from tests.support.stub import Answer, Stub

pytestmark = pytest.mark.slow

ELSEWHERE = {
    "kubectl",
    "names",
    "vcenter",
    "last-spans",
    "next page",
    "watch-pods",
    "writer",
    "observed cases",
}
"""Kinds that `serve` does not start here, or not always: they need `reconciler page`, shell completion,
vCenter, traces, more nodes, or mode Observe. The tests of their places have the same fault.
"""

AT_THE_START = {
    "APScheduler",
    "documents",
    "health",
    "passes",
    "watch of nodes",
    "watch of the settings file",
}
"""Kinds that start with the process. Without one of them it ends, and Kubernetes starts it again."""

WITH_THE_LOCK = {"lock", "notices", "revisions of the settings"}

ONCE = {"output"}
"""Kinds that start with the process, which goes on without: then a log that nobody reads can block it."""

SOON = 60.0
Defaults = dict[str, dict[str, float]]
LOCK = "reconciler.kubernetes.lease:Lock.__init__"
SHORT_LOCK: Defaults = {LOCK: {"duration": 5.0, "renew_every": 0.5}}
PODS_HAVE_EVENTS_SOON: Defaults = {
    "reconciler.features.events.pod_events:PodEvents.__init__": {"behind": 0.0}
}
SETTINGS = (
    ENFORCE + "budget: {maxUnavailable: 100%}\n"
    "hooks: {preDrain: [{name: leave, webhook: {url: 'URL/hook'}}]}\n"
    "notify: [{name: people, webhook: {url: 'URL/people'}, group: 0s}]\n"
)


class World:
    """A cluster, a service for hooks and messages, and `serve`, which can't start some threads."""

    def __init__(self, scene: Scene, programs: Programs, folder: Path) -> None:
        self._scene, self._programs = scene, programs
        self.service = Stub(lambda asked: Answer(b"ok"))
        self._file = folder / "no-threads"
        self.refuse()
        self.no_files = folder / "no-files"
        self.history = folder / "history.jsonl"
        self._nodes = 0
        self.configure()

    def configure(self, more: str = "") -> None:
        """Write the settings file."""
        self._programs.configure(SETTINGS.replace("URL", self.service.url) + more)

    def refuse(self, *patterns: str) -> None:
        """Let the next thread of each of these kinds not start."""
        fresh = self._file.with_suffix(".fresh")
        fresh.write_text("\n".join(patterns), encoding="utf-8")
        fresh.rename(self._file)

    @property
    def left(self) -> set[str]:
        """The kinds that nobody has tried to start since."""
        return {kind for kind in self._file.read_text(encoding="utf-8").split("\n") if kind}

    def start(self, defaults: Defaults = PODS_HAVE_EVENTS_SOON) -> Running:
        """Start the program as Kubernetes does: again, until it goes on."""
        pod = {
            NO_THREADS: str(self._file),
            NO_FILES: str(self.no_files),
            DEFAULTS: json.dumps({**PODS_HAVE_EVENTS_SOON, **defaults}),
        }
        command = ["serve", "--every", "2s", "--listen", "127.0.0.1:0", "--history", str(self.history)]
        for _ in range(len(AT_THE_START) + 2):
            serve = self._programs.start(*command, pod=pod)
            with suppress(AssertionError):
                serve.wait_for("leading")
                return serve
            assert serve.wait().code in (1, 3)
            assert "can't start new thread" in serve.everything()
        raise AssertionError("it never leads")

    def case(self, serve: Running) -> None:
        """Ask for the drain of a new node, and wait for all that follows."""
        scene, name = self._scene, f"web{self._nodes}"
        node = scene.node(self._nodes)
        self._nodes += 1
        scene.workload(name, node)
        scene.annotate(node, "request", '{"kind": "Reboot"}')
        until = time.monotonic() + SOON
        follows: dict[str, Callable[[], object]] = {
            "a cordon": partial(scene.cordoned, node),
            "the hook": partial(self._asked, "/hook", node),
            "the end of the drain": lambda: not scene.pods_on(node),
            "an Event about the node": partial(self._event, node),
            "an Event for the owner": partial(self._event, name),
            "a message to people": partial(self._asked, "/people", node),
        }
        for what, condition in follows.items():
            try:
                serve.does(f"{what} of {node}", condition, seconds=max(until - time.monotonic(), 0.0))
            except TimeoutError as error:
                raise AssertionError(f"{error}: {serve.everything()}") from error

    def starts(self, serve: Running, but: set[str]) -> None:
        """Open the page, which starts threads of its own, until each other kind has been tried."""
        (line,) = serve.said("listening")

        def tried() -> bool:
            with suppress(OSError):
                urllib.request.urlopen(f"http://{line['address']}/", timeout=60).close()
            return self.left <= but

        serve.does("a start of each kind", tried, seconds=SOON)

    def _asked(self, path: str, node: str) -> bool:
        return any(asked.path == path and node.encode() in asked.body for asked in list(self.service.asked))

    def _event(self, about: str) -> bool:
        return any(
            event["involvedObject"]["name"].startswith(about) and "aintenance" in event["reason"]
            for event in self._scene.api.list("events", "default")
        )


@pytest.fixture
def world(scene: Scene, programs: Programs, tmp_path: Path) -> Iterator[World]:
    made = World(scene, programs, tmp_path)
    yield made
    made.service.close()


def test_no_kind_of_thread_can_start_once_as_the_process_starts(world: World) -> None:
    world.refuse(*kinds())
    serve = world.start()
    world.case(serve)
    world.starts(serve, ELSEWHERE)


def test_no_kind_of_thread_can_start_once_when_the_first_case_comes(world: World) -> None:
    serve = world.start()
    world.refuse(*kinds())
    world.case(serve)
    # No case has ended yet.
    world.starts(serve, ELSEWHERE | AT_THE_START | WITH_THE_LOCK | ONCE | {"history"})


def test_each_kind_of_thread_can_not_start_once_later(world: World) -> None:
    serve = world.start()
    world.case(serve)
    for kind in sorted(kinds() - ELSEWHERE - AT_THE_START - WITH_THE_LOCK - ONCE):
        world.refuse(kind)
        world.case(serve)
        # The others went on.
        if kind in {"hook *", "notices-*", "beside: *", "renewal", "watch-*"}:
            serve.does(f"a start of the thread {kind}", lambda: not world.left, seconds=SOON)


def test_no_kind_of_thread_can_start_once_while_settings_are_loaded(world: World) -> None:
    serve = world.start()
    world.case(serve)
    world.refuse(*kinds())
    # The watch of nodes has to look at another label.
    world.configure("overrides: [{nodeSelector: {team: batch}, events: {Reboot: {drain: true}}}]\n")
    serve.wait_for("settings loaded", count=2)
    world.case(serve)
    assert world.left >= AT_THE_START, "they went on"


def test_while_no_thread_can_start_at_all_the_lock_is_kept_and_nodes_are_cordoned(
    world: World, scene: Scene
) -> None:
    serve = world.start(SHORT_LOCK)
    world.case(serve)
    world.refuse("*")
    until = time.monotonic() + 2 * SHORT_LOCK[LOCK]["duration"]
    number = 50
    while time.monotonic() < until:
        node = scene.node(number)
        scene.condition_tells(node)
        serve.does(f"a cordon of {node}", partial(scene.cordoned, node), seconds=SOON)
        number += 1
    world.refuse()
    world.case(serve)
    assert len(serve.said("leading")) == 1


def test_each_place_that_opens_a_file_a_socket_or_a_module_can_not_once(world: World) -> None:
    serve = world.start()
    world.no_files.touch()
    world.case(serve)
    world.configure("overrides: [{nodeSelector: {team: batch}, events: {Reboot: {drain: true}}}]\n")
    serve.wait_for("settings loaded", count=2)
    world.case(serve)
    assert serve.everything().count(FAILED) > 5
