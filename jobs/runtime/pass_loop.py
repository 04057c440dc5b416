"""Runs passes in a thread of its own: on a schedule, at once for what is new, and not too often else."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from enum import Enum, auto
from pathlib import Path

from apscheduler.executors.debug import DebugExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from msgspec import Struct
from watchfiles import watch

from jobs.runtime.supervised import Ending, Supervised, Trouble, can_be_repeated, pause_after
from jobs.runtime.watchdog import Watchdog
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.scale.node_store import NodeStore, follow_nodes
from reconciler.model.node import Wanted
from reconciler.settings.load import read_settings
from reconciler.threads import start

TOGETHER = 0.003
"""Seconds. Changes come in groups (taint, label and condition of a node). One pass handles them together."""

APART = 1.0
"""Seconds between the passes for a cause that keeps changing."""

PART = 8.0
"""After a pass, the next one for the end of a drain begins so many times its duration after it began."""

ENDS = 0.5
"""Seconds between the passes for the ends of drains at least."""

QUIET = 10.0
"""Seconds after the last pass for a cause until its next change counts as a first one again."""

BURST = 5.0
"""Seconds for which drains and Events wait for the cordons of other nodes at most."""

REST = 0.25
"""Seconds for which an Event waits at most until no pass runs: it would take time from a cordon."""

MOST_FIRST = 40
"""Passes at once within `QUIET` seconds for first changes that are not urgent."""


class About(Enum):
    """What has changed.

    `DRAIN`: one has ended, and many others may soon. `STEP`: a pass has made a step of a workflow, so that no
    other change comes with it.
    """

    NODE = auto()
    NOTICE = auto()
    SETTINGS = auto()
    DRAIN = auto()
    STEP = auto()


class Cause(Struct, frozen=True):
    """What asks for a pass, by name: a node, the settings, a drain that has ended.

    The notice of a node is a cause of its own, so that other changes of that node do not delay it.
    """

    name: str
    about: About = About.NODE

    @property
    def urgent(self) -> bool:
        """Whether it waits for no schedule of passes."""
        return self.about in (About.NOTICE, About.SETTINGS, About.DRAIN)


class _Wish(Struct, frozen=True):
    """A cause that waits: since when, and whether it is the first change after a quiet time."""

    since: float
    first: bool


class Pacer:
    """Decides when the next pass starts. Times are arguments, in seconds of a clock that never goes back.

    A pass serves all causes that wait. The first change of a cause starts a pass at once. Further changes of
    the same cause start one pass a second. They also wait until a second after any other pass, so that many
    nodes that keep changing cost no more than one. Urgent causes wait for their own last pass only. No change
    waits longer than `APART` and `TOGETHER`, except where passes take longer than a second: then half of the
    time is left to other work.
    """

    def __init__(self) -> None:
        """Start with nothing that waits."""
        self._waiting: dict[Cause, _Wish] = {}
        self._served: dict[Cause, float] = {}
        self._first_passes: deque[float] = deque(maxlen=MOST_FIRST)
        self._began = float("-inf")
        self._rest, self._took = APART, 0.0
        self._runs = False
        self._due: float | None = None

    def note(self, cause: Cause, now: float) -> None:
        """Note that something has changed. A cause that waits already keeps its place."""
        if cause in self._waiting:
            return
        served = self._served.get(cause)
        first = served is None or now - served >= QUIET
        if first and not cause.urgent and self._first_used_up(now):
            first = False
        self._waiting[cause] = wish = _Wish(now, first)
        start = self._start(cause, wish)
        self._due = start if self._due is None else min(self._due, start)

    def due(self) -> float | None:
        """Return when the next pass starts, in the past if it is late; None if nothing waits."""
        return self._due

    def begin(self, now: float) -> None:
        """Note that a pass begins. It reads everything, so it serves all that wait."""
        if any(wish.first and not cause.urgent for cause, wish in self._waiting.items()):
            self._first_passes.append(now)
        self._served = {cause: at for cause, at in self._served.items() if now - at < QUIET}
        self._served.update(dict.fromkeys(self._waiting, now))
        self._waiting.clear()
        self._began, self._due, self._runs = now, None, True

    def end(self, now: float) -> None:
        """Note that the pass has ended: what keeps changing then rests as long as the pass took."""
        self._runs, self._took = False, now - self._began
        self._rest = max(APART, 2 * self._took)
        starts = [self._start(cause, wish) for cause, wish in self._waiting.items()]
        self._due = min(starts, default=None)

    def rests(self, now: float) -> bool:
        """Whether no pass runs, and none is due."""
        return not self._runs and (self._due is None or self._due > now)

    def bursts(self) -> bool:
        """Whether a node waits that has reported an event for the first time: it may need its cordon now."""
        return any(wish.first and cause.about is About.NOTICE for cause, wish in self._waiting.items())

    def _start(self, cause: Cause, wish: _Wish) -> float:
        soon = wish.since + (0.0 if cause.about is About.STEP else TOGETHER)
        if wish.first:
            # A cordon can't wait. The ends of many drains come together in a pass that takes long.
            apart = max(ENDS, PART * self._took)
            return max(soon, self._began + apart) if cause.about is About.DRAIN else soon
        if cause.urgent:
            return max(soon, self._served.get(cause, float("-inf")) + APART)
        return max(soon, self._began + self._rest)

    def _first_used_up(self, now: float) -> bool:
        passes = self._first_passes
        return len(passes) == MOST_FIRST and now - passes[0] < QUIET


Failed = Callable[[Exception, int, float], None]

_LATEST = 1.5
"""How many intervals may pass without a pass. The scheduler goes by the wall clock, which can be set back."""


class Success:
    """Whether passes work, and since when they do not."""

    def __init__(self, every: float) -> None:
        """`every` is the longest time in seconds between two passes."""
        self._every = every
        self.longest = every * 3 + 120
        """Seconds without the end of a pass after which the process should be restarted."""
        self._trouble: Trouble | None = None
        self._last_good: float | None = None
        self.last_end = time.monotonic()

    def good(self) -> None:
        """Note that the running pass does what it should."""
        self._last_good = time.monotonic()
        self._trouble = None

    def failed(self, error: Exception) -> int:
        """Note that a pass has failed, and return how many have in a row."""
        self._trouble = Trouble.after(self._trouble, error)
        return self._trouble.failures

    def stuck(self) -> str:
        """Return that no pass has ended for a long time, or an empty text."""
        silence = time.monotonic() - self.last_end
        return f"no pass has ended for {silence:.0f} s" if silence > self.longest else ""

    def unready(self) -> str:
        """Return why the passes do not work, or an empty text."""
        if self._trouble is not None:
            return f"the pass {self._trouble}"
        if self._last_good is None:
            return "no pass has succeeded yet"
        silence = time.monotonic() - self._last_good
        return f"the last successful pass was {silence:.0f} s ago" if silence > self._every * 3 else ""


ENDS_WITHIN = 2.0
"""Seconds for which the end of the loop waits for the running pass. One that hangs is left."""


class PassLoop:
    """The loop. An error of a pass never ends it, except for one that a repetition can't help, such as
    MemoryError: that one ends the process.
    """

    def __init__(
        self,
        run: Callable[[], float | None],
        every: float,
        failed: Failed,
        ending: Ending,
        pause: Callable[[int], float] = pause_after,
    ) -> None:
        """Take the function that runs one pass, and `every`, the longest seconds between two passes.

        `run` returns in how many seconds it wants to run again, None for the schedule. `failed` is given each
        unexpected error, the number of failures in a row, and the seconds until the next pass.
        """
        self._run, self._every, self._failed = run, every, failed
        self._ending, self._pause = ending, pause
        self._changed = threading.Condition()
        self._calm = threading.Event()
        self._calm.set()
        self._pacer = Pacer()
        self._next = time.monotonic()
        self._leaving = self._scheduled = False
        self._requeue: float | None = None
        # The job is a notice of a moment, so it is done by the scheduler's own thread.
        self._scheduler = BackgroundScheduler(timezone="UTC", executors={"default": DebugExecutor()})
        # It warns of every run that comes while another one is under way.
        logging.getLogger("apscheduler").setLevel(logging.ERROR)
        self._scheduler.add_job(
            self._on_schedule,
            "interval",
            seconds=every,
            max_instances=1,
            coalesce=True,
            misfire_grace_time=None,
        )
        self.success = Success(every)
        """Whether the passes work."""
        self.watchdog = Watchdog(self.success.longest)
        """Whether the passes end."""
        self._thread: threading.Thread | None = None

    def __enter__(self) -> PassLoop:
        """Begin, with the first pass at once. An error comes before it, and ends the process."""
        self._scheduler.start()
        self._thread = start("passes", self._loop)
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the running pass for a short time, and run no other."""
        self._scheduler.shutdown(wait=False)
        with self._changed:
            self._leaving = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(ENDS_WITHIN)

    def wake(self, cause: Cause) -> None:
        """Run a pass soon; see Pacer. May be called from any thread."""
        with self._changed:
            before = self._pacer.due()
            self._pacer.note(cause, time.monotonic())
            if self._pacer.bursts():
                self._calm.clear()
            if self._pacer.due() != before:
                self._changed.notify_all()

    def wait_for_calm(self) -> None:
        """Wait while nodes report events for the first time, until the passes about them have ended.

        It takes `BURST` seconds at most, and may be called from any thread.
        """
        self._calm.wait(BURST)

    def wait_for_rest(self) -> bool:
        """Wait for calm, then for `REST` seconds at most while a pass runs; return whether none runs now."""
        self.wait_for_calm()
        with self._changed:
            return self._changed.wait_for(lambda: self._pacer.rests(time.monotonic()), REST)

    def at_least_every(self, seconds: float | None) -> None:
        """Run a pass at least so often from the next pass on; None leaves it to the schedule.

        If a pass takes long, half of the time is left to other work.
        """
        self._requeue = seconds

    def _on_schedule(self) -> None:
        with self._changed:
            self._scheduled = True
            self._changed.notify_all()

    def stuck(self) -> str:
        """Return why the process should be restarted: no pass has ended for a long time. Else empty."""
        if self._ending.error is not None:
            return f"the process ends: {type(self._ending.error).__name__}"
        return self.success.stuck()

    def _loop(self) -> None:
        try:
            while self._wait():
                self._once()
        except BaseException as error:  # noqa: BLE001 - the main thread raises it again
            self._ending.fatal(error)

    def _wait(self) -> bool:
        """Wait until the next pass is due, and begin it; return False when the loop is left."""
        with self._changed:
            while not self._leaving:
                now = time.monotonic()
                due = self._pacer.due()
                start = self._next if due is None else min(self._next, due)
                if start <= now or self._scheduled:
                    self._scheduled = False
                    self._pacer.begin(now)
                    return True
                self._changed.wait(start - now)
            return False

    def _once(self) -> None:
        began = time.monotonic()
        again: float | None = None
        good = True
        self.watchdog.begins()
        try:
            again = self._run()
        except Exception as error:
            if not can_be_repeated(error):
                raise
            good = False
            failures = self.success.failed(error)
            again = min(self._pause(failures), self._every)
            self._failed(error, failures, again)
        now = time.monotonic()
        with self._changed:
            self.success.last_end = now
            self._pacer.end(now)
            if not self._pacer.bursts():
                self._calm.set()
            self._changed.notify_all()
            self._next = began + self._every * _LATEST
            if again is not None:
                # What a node says may move the plan's next moment. It costs one pass a second at most.
                soonest = max(min(APART, self._every), PART * (now - began))
                self._next = min(self._next, max(now + again, began + soonest))
            if self._requeue is not None:
                self._next = min(self._next, began + max(self._requeue, 2 * (now - began)))
            if good:
                self.watchdog.ends(max(0.0, self._next - now))


Wake = Callable[[Cause], None]
SETTINGS = Cause("settings", About.SETTINGS)


class NodeWatcher:
    """Calls `wake` from its own thread for every change of a node field that the reconciler reads.

    A watch that ends or fails, for whatever reason, begins again after a pause. The scheduled passes continue
    without it. The same thread watches until it is left, also after other settings.
    """

    def __init__(
        self, connection: Connection, wanted: Wanted, store: NodeStore, wake: Wake, ending: Ending
    ) -> None:
        """Watch these fields over this connection; the store has each change before the wake."""
        self._connection = connection
        self._wanted = wanted
        self._store = store
        self._wake = wake
        self._open = ExitStack()
        self._thread = Supervised("watch of nodes", self._watch, ending)

    def __enter__(self) -> NodeWatcher:
        """Begin to watch."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop watching, and close the connection, so that the thread does not wait for the next change."""
        self._thread.stop.set()
        self._open.close()
        self._thread.join()

    def want(self, wanted: Wanted) -> None:
        """Watch these fields from now on."""
        if wanted != self._wanted:
            self._wanted = wanted
            self._open.close()

    def trouble(self) -> str:
        """Return what is wrong with the watch and since when, empty if nothing is."""
        return self._thread.trouble()

    def _watch(self, thread: Supervised) -> None:
        wanted: Wanted | None = None
        # A watch that ends by itself ends this.
        while not thread.stop.is_set() and wanted is not self._wanted:
            # Closes what the last try has left open.
            self._open.close()
            wanted = self._wanted
            changes = self._open.enter_context(follow_nodes(self._connection, wanted, self._store))
            # Only now: who stops the thread, or wants other fields, says so first, then closes what is open.
            if thread.stop.is_set() or wanted is not self._wanted:
                continue
            for change in changes:
                thread.well()
                self._wake(Cause(f"node {change.name}", About.NOTICE if change.urgent else About.NODE))


class FileWatcher:
    """Calls `wake` when a file's content changes, from a thread of its own.

    The folder is watched: Kubernetes updates a mounted ConfigMap by turning a link beside the file. Each pass
    compares the file as well, so a lost message delays new settings until the next pass.
    """

    def __init__(self, file: Path, wake: Wake, ending: Ending) -> None:
        """Watch this file by its given name, including links."""
        self._file = file
        self._wake = wake
        self._known = digest(file)
        self._thread = Supervised("watch of the settings file", self._watch, ending)

    def __enter__(self) -> FileWatcher:
        """Begin to watch."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop watching."""
        self._thread.join()

    def trouble(self) -> str:
        """Return what is wrong with the watch and since when, empty if nothing is."""
        return self._thread.trouble()

    def _watch(self, thread: Supervised) -> None:
        folder = self._file.parent
        for _ in watch(
            folder,
            stop_event=thread.stop,
            debounce=100,
            recursive=False,
            rust_timeout=500,
            yield_on_timeout=True,
        ):
            now = digest(self._file)
            if now != self._known:
                self._known = now
                self._wake(SETTINGS)
            thread.well()


def digest(file: Path) -> bytes:
    """Return a digest of the file's content, empty if the file can't be read."""
    try:
        return hashlib.sha256(read_settings(file)).digest()
    except OSError:
        return b""
