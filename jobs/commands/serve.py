"""`reconciler serve`: passes until stopped, on a schedule and when something changes."""

from __future__ import annotations

import logging
import threading
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path

import click
from apscheduler.schedulers.background import BackgroundScheduler

from jobs import options
from jobs.runtime.acting import Acting
from jobs.runtime.clock import SystemClock
from jobs.runtime.environment import Target
from jobs.runtime.health import HealthServer
from jobs.runtime.logs import Teller, log_as_json
from jobs.runtime.outside import Wiring
from jobs.runtime.signals import ended_by_signals
from jobs.runtime.watching import FileWatcher, NodeWatcher, digest
from reconciler.clients.kubernetes.connection import Connection
from reconciler.errors import ClusterError, LockHeld, LockLost, SettingsError
from reconciler.model.drains import DrainProgress, Phase
from reconciler.observe import wanted
from reconciler.run import rehearse
from reconciler.settings.load import load_settings
from reconciler.settings.schema import Mode

# Changes come in groups (taint, label and condition of a node). One pass handles them together.
DEBOUNCE = timedelta(milliseconds=50)
# Pauses after the lock was lost, and as a standby or after an error of the API server.
_SOON = timedelta(seconds=0.2)
_AGAIN = timedelta(seconds=5)
_JOB = "pass"


@click.command("serve")
@options.config
@options.cluster
@click.option(
    "--listen",
    type=options.ADDRESS,
    help="Serve /healthz and /readyz at this address: :8080 or 127.0.0.1:8080.",
)
@click.option(
    "--every",
    type=options.DURATION,
    default="30s",
    show_default=True,
    help="The longest time between two passes.",
)
def command(config: Path, target: Target, listen: tuple[str, int] | None, every: timedelta) -> int:
    """Run passes until stopped, for a Deployment: on a schedule, and when a node changes."""
    return serve(config, target, listen=listen, every=every)


def serve(config: Path, target: Target, *, listen: tuple[str, int] | None, every: timedelta) -> int:
    """Run until SIGTERM. The next process continues the drains that have started."""
    log_as_json()
    load_settings(config)
    connection = Connection(target.kubeconfig, target.context)
    stop = threading.Event()
    with ExitStack() as open_things:
        open_things.callback(connection.close)
        open_things.enter_context(ended_by_signals(stop))
        server = Serving(connection, target, config, every)
        if listen is not None:
            checks = {"/healthz": server.stuck, "/readyz": server.unready}
            health = open_things.enter_context(HealthServer(listen, checks))
            Teller.say("listening", port=health.port)
        open_things.enter_context(server)
        stop.wait()
        Teller.say("ending")
    Teller.say("ended")
    return 0


class Serving:
    """The loop: one scheduled job. Watches, the end of a drain, and the plan start it early."""

    def __init__(self, connection: Connection, target: Target, config: Path, every: timedelta) -> None:
        """Prepare the job. `every` is the longest time between two passes."""
        self._connection, self._target, self._config, self._every = connection, target, config, every
        self._clock = SystemClock()
        self._settings = load_settings(config)
        self._digest = digest(config)
        self._acting: Acting | None = None
        self._only_looking = Wiring(connection, target)
        self._teller = Teller()
        self._woken = threading.Event()
        self._planning = threading.Lock()
        self._stopping = threading.Event()
        self._last_good: datetime | None = None
        self._last_end = self._clock.now()
        self._things = ExitStack()
        self._watch = ExitStack()
        self._scheduler = BackgroundScheduler(timezone="UTC")
        # A wake that comes while a pass runs is not lost: the pass itself looks for it before it ends.
        logging.getLogger("apscheduler").setLevel(logging.ERROR)

    def __enter__(self) -> Serving:
        """Start, with the first pass at once."""
        self._scheduler.add_job(
            self._job,
            "interval",
            id=_JOB,
            seconds=self._every.total_seconds(),
            next_run_time=self._clock.now(),
            max_instances=1,
            coalesce=True,
            misfire_grace_time=None,
        )
        self._scheduler.start()
        self._things.enter_context(FileWatcher(self._config, self.wake))
        self._watch_nodes()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop: wait for the running pass, stop evictions, and release the lock."""
        self._stopping.set()
        self._things.close()
        self._scheduler.shutdown(wait=True)
        self._watch.close()
        self._leave()

    def _watch_nodes(self) -> None:
        """Watch the node fields that the current settings need."""
        self._watch.close()
        self._watch.enter_context(NodeWatcher(self._connection, wanted(self._settings), self.wake))

    def wake(self) -> None:
        """Start a pass at once, or right after the running one."""
        with self._planning:
            if not self._woken.is_set() and not self._stopping.is_set():
                self._woken.set()
                self._scheduler.modify_job(_JOB, next_run_time=self._clock.now() + DEBOUNCE)

    def stuck(self) -> str:
        """Return why the process is stuck: no pass has ended for a long time. Else empty."""
        silence = self._clock.now() - self._last_end
        return f"no pass has ended for {silence}" if silence > self._every * 3 + timedelta(minutes=2) else ""

    def unready(self) -> str:
        """Return why the process is not ready, or an empty text."""
        if self._last_good is None:
            return "no pass has succeeded yet"
        silence = self._clock.now() - self._last_good
        return f"the last successful pass was {silence} ago" if silence > self._every * 3 else ""

    def _job(self) -> None:
        while not self._stopping.is_set():
            self._woken.clear()
            again_at = self._pass_safely()
            self._last_end = self._clock.now()
            # A wake in between would be put off to the plan's own time, and no later one would be heard.
            with self._planning:
                if not self._woken.is_set():
                    self._plan_next(again_at)
                    return

    def _plan_next(self, change: datetime | None) -> None:
        """Start the next pass when the plan changes, if that is before the schedule."""
        if change is None or self._stopping.is_set():
            return
        if self._clock.now() < change < self._clock.now() + self._every:
            self._scheduler.modify_job(_JOB, next_run_time=change)

    def _pass_safely(self) -> datetime | None:
        """Run one pass. No error of the cluster ends the loop. Return when the plan changes next."""
        try:
            self._reload()
            change = self._pass()
        except LockHeld as held:
            self._teller.standby(held.holder)
        except LockLost as error:
            self._teller.trouble(error)
            self._leave()
            # Take the lock again at once, or stand by. Writes wait until then.
            return self._clock.now() + _SOON
        except ClusterError as error:
            self._teller.trouble(error)
            return self._clock.now() + _AGAIN
        else:
            self._last_good = self._clock.now()
            return change
        self._last_good = self._clock.now()
        return self._last_good + _AGAIN

    def _reload(self) -> None:
        """Load the settings again if the file has changed. Invalid settings are reported, and not used."""
        now = digest(self._config)
        if now == self._digest:
            return
        self._digest = now
        try:
            self._settings = load_settings(self._config)
        except SettingsError as error:
            self._teller.rejected(error)
            return
        Teller.say("settings loaded", mode=self._settings.mode.value)
        self._watch_nodes()
        if self._acting is not None:
            self._acting.settings = self._settings

    def _pass(self) -> datetime | None:
        if self._settings.mode is Mode.OBSERVE:
            self._leave()
            outside = self._only_looking.to_read(self._settings)
            plan = rehearse(outside, self._settings, self._clock.now())
            self._teller.tell(plan, (), rehearsed=True)
            return plan.next_change
        plan, outcomes = self._enter().run_pass()
        self._teller.tell(plan, outcomes, rehearsed=False)
        return plan.next_change

    def _enter(self) -> Acting:
        if self._acting is None:
            acting = Acting(self._connection, self._target, self._settings, self._clock, self._on_progress)
            acting.__enter__()
            self._acting = acting
            Teller.say("leading")
        return self._acting

    def _leave(self) -> None:
        if self._acting is not None:
            acting, self._acting = self._acting, None
            acting.__exit__(None, None, None)

    def _on_progress(self, progress: DrainProgress) -> None:
        if progress.phase is not Phase.RUNNING:
            self.wake()
