"""Makes passes: on a schedule, at once for what is new, and not too often else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from enum import Enum, auto

from msgspec import Struct

from jobs.runtime.supervised import Ending, can_be_repeated, pause_after
from jobs.runtime.timer import PassTimer
from jobs.runtime.watchdog import Watchdog
from reconciler.threads import start

TOGETHER = 0.003
"""Seconds. Changes come in groups (taint, label and condition of a node). One pass handles them together."""

APART = 1.0
"""Seconds between the passes for a cause that keeps changing."""

FIRST_APART = 0.25
"""Seconds between the passes for the first changes of many nodes."""

ENDS_APART = 0.5
"""Seconds between the passes for the ends of drains at least."""

PART = 8.0
"""After a pass, the next one for the end of a drain begins so many times its duration after it began."""

QUIET = 10.0
"""Seconds after the last pass for a cause until its next change counts as a first one again."""

BURST = 5.0
"""Seconds for which drains and Events wait for the cordons of other nodes at most."""

REST = 0.25
"""Seconds for which an Event waits at most until no pass runs: it would take time from a cordon."""

ENDS_WITHIN = 2.0
"""Seconds for which the end of the loop waits for the running pass. One that hangs is left."""


class About(Enum):
    """What has changed.

    `NOTICE`: the events of a node. `DRAIN`: one has ended, and many others may soon. `STEP`: a pass has made
    a step of a profile, so that no other change comes with it.
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


Failed = Callable[[Exception, int, float], None]


class PassLoop:
    """Passes in a thread of their own, one after the other. The timer rings for each.

    A pass serves all causes that wait. The first change of a cause starts a pass at once, further changes of
    the same cause one pass a second. A notice and new settings wait for no pass about others. All other
    changes wait also after any other pass, so that many nodes that change cost few passes, and where passes
    take long, half of the time is left to other work.

    An error of a pass never ends the loop, except for one that a repetition can't help, such as MemoryError:
    that one ends the process.
    """

    def __init__(
        self,
        run: Callable[[], float | None],
        every: float,
        failed: Failed,
        ending: Ending,
        pause: Callable[[int], float] = pause_after,
        *,
        timer: Callable[[Callable[[], object]], PassTimer] = PassTimer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the function that runs one pass, and `every`, the longest seconds between two passes.

        `run` returns in how many seconds it wants to run again, None for the schedule. `failed` is given each
        unexpected error, the number of failures in a row, and the seconds until the next pass. `clock` is in
        seconds, and never goes back.
        """
        self._run, self._failed = run, failed
        self._ending, self._pause, self._clock = ending, pause, clock
        self._due = threading.Event()
        self._timer = timer(self._due.set)
        self.watchdog = Watchdog(every, clock)
        """Whether the passes end, and work. Its `every` is the longest time between two of them."""
        self._thread: threading.Thread | None = None
        self._changed = threading.Condition()
        self._waiting: dict[Cause, float] = {}
        """Since when each cause waits for a pass."""
        self._served: dict[Cause, float] = {}
        """When the last pass for a cause began."""
        self._began, self._took = float("-inf"), 0.0
        self._next = clock()
        """When the next pass begins; in the past while one runs."""
        self._bursts = self._leaving = False

    def __enter__(self) -> PassLoop:
        """Begin, with the first pass at once. An error comes before it, and ends the process."""
        self._timer.__enter__()
        self._thread = start("passes", self._make_passes)
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the running pass for a short time, and run no other."""
        with self._changed:
            self._leaving = True
        self._timer.__exit__()
        self._due.set()
        if self._thread is not None:
            self._thread.join(ENDS_WITHIN)

    def wake(self, cause: Cause) -> None:
        """Make a pass soon. May be called from any thread. A cause that waits already keeps its place."""
        with self._changed:
            if self._leaving or cause in self._waiting:
                return
            self._waiting[cause] = now = self._clock()
            self._bursts = self._bursts or self._is_burst(cause)
            begins = self._may_begin(cause)
            # While a pass runs, its own moment is the next one: its end looks at all that waits then.
            if begins < self._next:
                self._next = begins
                self._timer.ring_in(begins - now)

    def wait_for_calm(self) -> bool:
        """Wait while nodes report events for the first time, until the passes about them have ended.

        It takes `BURST` seconds at most, and may be called from any thread. Return whether they have ended.
        """
        with self._changed:
            return self._changed.wait_for(lambda: not self._bursts, BURST)

    def wait_for_rest(self) -> bool:
        """Wait for calm, then for `REST` seconds at most while a pass runs; return whether none runs now."""
        self.wait_for_calm()
        with self._changed:
            return self._changed.wait_for(lambda: self._next > self._clock(), REST)

    def stuck(self) -> str:
        """Return why the process should be restarted: no pass has ended for a long time. Else empty."""
        if self._ending.error is not None:
            return f"the process ends: {type(self._ending.error).__name__}"
        return self.watchdog.stuck()

    def make_pass(self) -> None:
        """Make one pass, and let the timer ring for the next one; raises what no repetition helps."""
        with self._changed:
            if self._leaving:
                return
            self._began = self._clock()
            # The pass reads everything, so it serves all that wait.
            self._served = {cause: at for cause, at in self._served.items() if self._began - at < QUIET}
            self._served.update(dict.fromkeys(self._waiting, self._began))
            self._waiting.clear()
        self.watchdog.begins()
        again: float | None = None
        good = True
        try:
            again = self._run()
        except Exception as error:
            if not can_be_repeated(error):
                raise
            good = False
            failures = self.watchdog.failed(error)
            again = min(self._pause(failures), self.watchdog.every)
            self._failed(error, failures, again)
        with self._changed:
            now = self._clock()
            self._took = now - self._began
            begins = [self._began + self.watchdog.every, *map(self._may_begin, self._waiting)]
            if again is not None:
                # What a node says may move the plan's next moment. It costs one pass a second at most.
                apart = max(min(APART, self.watchdog.every), PART * self._took)
                begins.append(max(now + again, self._began + apart))
            self._next = min(begins)
            self.watchdog.ends(self._next - now if good else None)
            self._bursts = any(map(self._is_burst, self._waiting))
            self._changed.notify_all()
            # Also where the schedule has rung during the pass: the next one begins when this says so.
            self._due.clear()
            if not self._leaving:
                self._timer.ring_in(self._next - now)

    def _make_passes(self) -> None:
        try:
            while not self._leaving:
                self._due.wait()
                self.make_pass()
        except BaseException as error:  # noqa: BLE001 - the main thread raises it again
            self._ending.fatal(error)

    def _may_begin(self, cause: Cause) -> float:
        """Return when a pass for a cause that waits may begin."""
        since, served = self._waiting[cause], self._served.get(cause, float("-inf"))
        first = since - served >= QUIET
        soon = since + TOGETHER
        match cause.about:
            case About.NOTICE | About.SETTINGS:
                return max(soon, served + APART)
            case About.DRAIN:
                # The ends of many drains come together in a pass that takes long.
                return max(soon, served + APART, self._began + max(ENDS_APART, PART * self._took))
            case About.STEP if first:
                return since
            case About.NODE if first:
                return max(soon, self._began + FIRST_APART)
        return max(soon, self._began + max(APART, 2 * self._took))

    def _is_burst(self, cause: Cause) -> bool:
        """Whether a node has reported an event for the first time: it may need its cordon now."""
        served = self._served.get(cause, float("-inf"))
        return cause.about is About.NOTICE and self._waiting[cause] - served >= QUIET
