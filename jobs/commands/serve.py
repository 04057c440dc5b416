"""`reconciler serve`: passes until stopped, on a schedule and when something changes."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

from jobs import options
from jobs.runtime.acting import Acting, Following, Yields, acting_now
from jobs.runtime.clock import ServerClock, SystemClock
from jobs.runtime.environment import Target, is_our_place
from jobs.runtime.health import HealthServer, place_of
from jobs.runtime.log_line import Level, LogEvent
from jobs.runtime.logs import PassLog, log_as_json
from jobs.runtime.outside import Wiring, reconciler_of
from jobs.runtime.pass_loop import About, Cause, PassLoop
from jobs.runtime.process import (
    Observer,
    Observers,
    Passed,
    Surroundings,
    options_of_features,
    own_pod_events,
)
from jobs.runtime.settings_source import Look, SettingsFile, SettingsWarning, warn_of_no_settings
from jobs.runtime.supervised import Ending, LastRead, ended_by_signals, wait_until_set
from jobs.runtime.watches import FileWatcher, NodeWatcher
from reconciler.kubernetes.cluster_name import name_cluster
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.lease import Sighting
from reconciler.kubernetes.scale.beside import ThreadsBeside
from reconciler.kubernetes.scale.node_store import NodeStore
from reconciler.model.coverage import SettingsSeen
from reconciler.model.drains import DrainProgress, Phase
from reconciler.model.ended_case import EndedCase
from reconciler.model.errors import (
    ClusterError,
    Late,
    LockHeld,
    LockLost,
    OutputError,
    ReconcilerError,
    SettingsError,
)
from reconciler.model.limits import first_of
from reconciler.model.plan import Notice
from reconciler.model.values import replace
from reconciler.passes.observe import wanted
from reconciler.passes.store import Store
from reconciler.run import PARTS, rehearse
from reconciler.settings.load import load_settings
from reconciler.settings.schema import Mode, Settings

log = logging.getLogger(__name__)

# Seconds: pauses after the lock was lost, and as a standby.
_SOON = 0.2
_STANDBY = 2.0

AGAIN = 5.0
"""Seconds: the pause after an error of the API server."""


@click.command("serve")
@options.config
@options.own_cluster
@click.option(
    "--listen",
    type=options.ADDRESS,
    help="Serve /healthz, /readyz, /metrics and the page at /: 8080 to this machine only, :8080 to all.",
)
@click.option(
    "--every",
    type=options.DURATION,
    default="30s",
    show_default=True,
    help="The longest time between two passes.",
)
@click.option(
    "--log-level",
    type=click.Choice([level.value for level in Level]),
    default=Level.INFO.value,
    show_default=True,
    help="The lowest level of the lines that are written to stdout.",
)
@options_of_features("serve")
def command(
    config: Path,
    target: Target,
    listen: tuple[str, int] | None,
    every: timedelta,
    log_level: str,
    given: Mapping[str, Any],
) -> int:
    """Run passes until stopped, for a Deployment.

    Passes run on a schedule, and when a node changes. See docs/operating.md.
    """
    return serve(config, target, listen=listen, every=every, log_level=Level(log_level), given=given)


def serve(
    config: Path,
    target: Target,
    *,
    listen: tuple[str, int] | None,
    every: timedelta,
    log_level: Level = Level.INFO,
    given: Mapping[str, Any] = MappingProxyType({}),
) -> int:
    """Run until SIGTERM. The next process continues the drains that have started.

    Raises SettingsError if the settings can't be used at the start, and first writes an Event on its own Pod:
    there are no last good ones. `given` are the values of options of features; raises OutputError if one
    can't be followed.
    """
    log_as_json(log_level)
    try:
        return _serve(config, target, listen, every, given)
    except SettingsError as error:
        warn_of_no_settings(error, target)
        raise


def _serve(
    config: Path, target: Target, listen: tuple[str, int] | None, every: timedelta, given: Mapping[str, Any]
) -> int:
    # First, so that mistakes in the settings are reported also if there are no credentials.
    try:
        load_settings(config, environment=os.environ)
    except SettingsError:
        if listen is None:
            raise
        # Its page, metrics and /readyz say which nodes nobody guards, until the file is repaired.
    connection = Connection(target.kubeconfig, target.context)
    if connection.insecure:
        log.warning(connection.insecure)
    ending = Ending()
    with ExitStack() as open_things:
        open_things.callback(connection.close)
        open_things.enter_context(ended_by_signals(ending.stop))
        server = Serving(connection, target, config, every, ending, shows_rejected=listen is not None)
        around = Surroundings(
            "serve",
            given,
            log.warning,
            target,
            connection,
            listen is not None,
            server.now,
            server.trouble,
            server.look,
        )
        observers = open_things.enter_context(server.observers.add(around))
        last_read = LastRead(ending)
        if listen is not None:

            def report(error: Exception) -> None:
                observers.unexpected()
                PassLog.probe_failed(error)

            checks = {"/healthz": server.stuck, "/readyz": server.unready}
            try:
                health = HealthServer(listen, checks, documents=observers.documents, report=report)
            except OSError as error:
                reason = error.strerror or str(error)
                raise OutputError(
                    f"--listen {place_of(listen)}: {reason}; name an address of this host"
                ) from error
            open_things.enter_context(health)
            open_things.callback(last_read.wait, health, observers.last_read)
            PassLog.write(LogEvent.LISTENING, address=health.place)
        open_things.enter_context(server)
        wait_until_set(ending.stop)
        last_read.wanted()
        PassLog.write(LogEvent.ENDING)
    if ending.error is not None:
        # Kubernetes starts the process again: a repetition inside it would not help.
        raise ending.error
    PassLog.write(LogEvent.ENDED)
    return 0


class _Own(Observer):
    """Logs the cases that end, and begins a pass when a drain ends, or gives its slot away."""

    def __init__(self, wake: Callable[[Cause], None]) -> None:
        self._wake, self._yields = wake, Yields()

    def keep(self, cases: Sequence[EndedCase]) -> None:
        """Log these cases."""
        PassLog.cases(cases)

    def progressed(self, progress: DrainProgress) -> None:
        """Begin a pass where one is needed."""
        if progress.phase is not Phase.RUNNING or self._yields.see(progress):
            self._wake(Cause(f"drain of {progress.node}", About.DRAIN))


class Serving:
    """What a pass of `serve` is, and what starts it early: watches, the end of a drain, and the plan."""

    def __init__(
        self,
        connection: Connection,
        target: Target,
        config: Path,
        every: timedelta,
        ending: Ending,
        *observers: Observer,
        shows_rejected: bool = False,
    ) -> None:
        """Prepare the loop. `every` is the longest time between two passes, if the settings do not say when.

        See SettingsFile for the rest.
        """
        self._clock = ServerClock(connection)
        self._file = SettingsFile(config, SystemClock().now, shows_rejected=shows_rejected)
        self._acting: Acting | None = None
        self._entering, self._left = threading.Lock(), False
        self._lets_others_until = 0.0
        """Until when (monotonic seconds) this process leaves the lock, which it gave back, to another one."""
        self._followed = NodeStore()
        self._only_looking = Wiring(connection, target, nodes=self._followed)
        self._cluster = connection, target
        self._standing_by = Wiring(connection, target)
        self._beside = ThreadsBeside()
        write = own_pod_events(connection, self._only_looking.itself, lambda: self._settings.time_zone)

        def warn(notice: Notice) -> bool:
            self._beside.begins()
            with suppress(Late):
                return self._beside.write(("an Event on our own Pod",), partial(write, notice))
            return False

        self._warning = SettingsWarning(warn)
        self._log = PassLog()
        self._began = time.monotonic()
        self._option = every
        self._every = self._longest()
        """The longest time between two passes, while nothing changes."""
        self._loop = PassLoop(self._run, self._every.total_seconds(), self._unexpected, ending)
        self._following = Following(
            Store(PARTS),
            self._loop.watchdog,
            Sighting(),
            self._loop.wait_for_calm,
            self._loop.wait_for_rest,
            partial(self._loop.wake, Cause("an answer that came late")),
        )
        self.observers = Observers(_Own(self._loop.wake), *observers)
        self._files = FileWatcher(config, self._loop.wake, ending)
        self._nodes = NodeWatcher(
            self._only_looking.connection,
            wanted(self._settings, PARTS),
            self._followed,
            self._loop.wake,
            ending,
        )
        self._unguarded: tuple[str, ...] = ()
        """The nodes that nobody guards while there are no settings to act by."""
        self._seen: SettingsSeen | None = None
        """What the last pass without the lock knew of its settings: nobody says that in the lock."""

    def __enter__(self) -> Serving:
        """Start, with the first pass at once."""
        cluster = self._named()
        if self._settings.rejected:
            PassLog.settings_rejected(self._settings.rejected, self._settings, cluster)
        else:
            PassLog.settings_loaded(self._settings, cluster)
        self._files.__enter__()
        self._nodes.__enter__()
        self._loop.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop: wait for the running pass, stop evictions, and release the lock.

        The lock is given back in time, also if the pass or an eviction hangs.
        """
        with self._entering:
            self._left = True
            if self._acting is not None:
                self._acting.gives_back()
        with ExitStack() as things:
            things.push(self._nodes)
            # Ends the requests that hang.
            things.callback(self._only_looking.connection.close)
            things.callback(self._leave)
            things.push(self._loop)
            things.push(self._files)

    def _named(self) -> str:
        """Return what the cluster is called, after a look at what says it."""
        connection, _ = self._cluster
        name_cluster(connection, self._settings.cluster)
        return connection.cluster

    @property
    def _settings(self) -> Settings:
        return self._file.settings

    def stuck(self) -> str:
        """Return why the process is stuck: no pass has ended for a long time. Else empty."""
        return self._loop.stuck()

    def unready(self) -> str:
        """Return why the process is not ready, or an empty text.

        With a file that is rejected it is ready: passes go on with the last good settings, and a Service that
        shows the page would else have no endpoint. Without earlier settings it is not: it must not replace a
        Pod that has some.
        """
        passes = self._loop.watchdog.unready() or self._loop.watchdog.stands_still()
        reasons = [passes, self._nodes.trouble(), self._files.trouble()]
        if self._settings.rejected:
            names = f"; unguarded nodes: {first_of(self._unguarded)}" if self._unguarded else ""
            reasons[0] = f"the settings are rejected, and there are no earlier ones, so nobody acts{names}"
        return "; ".join(reason for reason in reasons if reason)

    def trouble(self) -> str:
        """Return what is wrong with this process, or an empty text."""
        # The page has the mistakes of settings without earlier ones from its plan.
        mistake = "" if self._settings.rejected else self._file.mistake()
        reasons = (self.stuck(), self.unready(), mistake)
        return "; ".join(reason for reason in reasons if reason)

    def look(self) -> Passed:
        """Return what a pass would do now, and who makes them, without the lock; raises ClusterError."""
        settings, (connection, target) = self._settings, self._cluster
        reconciler = reconciler_of(connection, target, settings)
        outside = replace(self._standing_by.to_read(settings), reconciler=reconciler)
        return Passed(rehearse(outside, settings, self.now()), settings)

    def _longest(self) -> timedelta:
        return self._settings.passes.apart(SystemClock().now(), self._settings.time_zone) or self._option

    def _run(self) -> float | None:
        """Run one pass. Return in how many seconds to run the next one, None for the schedule."""
        self._began = time.monotonic()
        self._reload()
        try:
            wishes = [self._try_pass(), self._file.again()]
            if (requeue := self._settings.every) is not None:
                wishes.append(requeue.total_seconds() - self._took())
            if self._settings.passes.cron is not None:
                now = self.now()
                began = now - timedelta(seconds=self._took())
                due = self._settings.passes.next_after(began, self._settings.time_zone)
                wishes.append(None if due is None else (due - now).total_seconds())
        finally:
            self._warning.report(self._file.mistake())
            self.observers.settings(good=not self._file.mistake())
        return min((seconds for seconds in wishes if seconds is not None), default=None)

    def _unexpected(self, error: Exception, failures: int, again: float) -> None:
        if not isinstance(error, ReconcilerError):
            self.observers.unexpected()
        self.observers.failed(self._took())
        self._log.unexpected(error, failures, again)

    def now(self) -> datetime:
        """Return the time (aware)."""
        return self._clock.now()

    def _took(self) -> float:
        return time.monotonic() - self._began

    def _try_pass(self) -> float | None:
        """Run one pass. Return in how many seconds the plan changes next, None for the schedule."""
        waits = self._lets_others_until - time.monotonic()
        if waits > 0:
            # A change of a node begins a pass at once, and a standby looks at the lock every 2 seconds.
            self._loop.watchdog.works()
            return waits
        try:
            change = self._pass()
        except LockHeld as held:
            again = min(_STANDBY, held.again)
            if is_our_place(held.holder):
                # It ended without a word, such as by a kill. Nobody acts, so this is no standby.
                before = f"an earlier run of this container still has the lock: {held.holder}"
                self._failed(LockLost(f"{before}; it is taken once nobody has renewed it for some seconds"))
                return again
            self._log.standby(held.holder)
            self.observers.stands_by(held.holder)
            # A holder that is dead is not known to act.
            if held.alive:
                self._loop.watchdog.works()
            return again
        except LockLost as error:
            self._loop.watchdog.acted()
            if self._acting is not None and self._acting.gave_back:
                # It waits as a standby does: the process on another node goes on with the drains.
                PassLog.write(LogEvent.GAVE_BACK, because="our own Pod is evicted from its node")
                self._leave()
                self._loop.watchdog.works()
                self._lets_others_until = time.monotonic() + AGAIN
                return AGAIN
            self._failed(error)
            self._leave()
            # Take the lock again at once, or stand by. Writes wait until then.
            return _SOON
        except ClusterError as error:
            self._failed(error)
            return AGAIN
        if self._settings.rejected:
            # Nobody acts, so no pass has succeeded.
            self.observers.failed(self._took())
            return AGAIN
        self._loop.watchdog.works()
        self._loop.watchdog.acted()
        self.observers.succeeded(self._took(), self._clock.now())
        # What has no answer yet is asked for again soon, also if it fails meanwhile.
        soon = [AGAIN] if self._acting is not None and self._acting.late else []
        # The moment may have come while the pass ran: then the next one is due at once.
        due = [] if change is None else [max((change - self._clock.now()).total_seconds(), 0.0)]
        return min((*soon, *due), default=None)

    def _failed(self, error: Exception) -> None:
        self._log.trouble(error)
        self.observers.failed(self._took())

    def _reload(self) -> None:
        """Load the settings again if the file has changed. Invalid settings are reported, and not used."""
        found = self._file.look()
        cluster = self._named()
        if found is Look.SAME:
            return
        if found is Look.REJECTED:
            because = self._file.rejection.because if self._file.rejection is not None else ""
            PassLog.settings_rejected(because, self._settings, cluster)
            return
        PassLog.settings_loaded(self._settings, cluster)
        if found is Look.RESTORED:
            return
        self._every = self._longest()
        self._loop.watchdog.every = self._every.total_seconds()
        if self._acting is not None:
            self._acting.settings, self._acting.every = self._settings, self._every
        self._nodes.want(wanted(self._settings, PARTS))

    def _pass(self) -> datetime | None:
        rehearsed = self._settings.mode is Mode.OBSERVE
        if rehearsed:
            self._leave()
            settings, looking = self._settings, self._only_looking
            if settings.rejected:
                reconciler = reconciler_of(*self._cluster, settings)
            else:
                acts = acting_now(looking.connection, settings, self.now())
                reconciler = replace(acts, interval=self._every, seen=self._seen)
            outside = replace(looking.to_read(settings), reconciler=reconciler)
            plan, outcomes = self.observers.rehearsed(
                settings, lambda: rehearse(outside, settings, self.now(), self._following.store)
            )
        else:
            plan, outcomes = self._enter().run_pass()
        self._log.write_pass(plan, outcomes, rehearsed=rehearsed)
        self._log.reconciler(plan.reconciler)
        self._seen = plan.reconciler.seen
        self._unguarded = tuple(node.node for node in plan.nodes if node.unguarded is not None)
        self._log.clocks(plan)
        for node in plan.nodes if not rehearsed else ():
            for part in node.of_features.values():
                # A step may follow at once. One that comes again and again waits, as any other cause.
                for profile, state in part.moved.items():
                    self._loop.wake(Cause(f"{profile} of {node.node} is {state.value}", About.STEP))
        if plan.next_change is None or plan.disagreement is None:
            return plan.next_change
        # The plan goes by the slowest clock, and this process does not.
        return plan.next_change + plan.disagreement.behind

    def _enter(self) -> Acting:
        if self._acting is None:
            acting = Acting(
                self._only_looking,
                self._settings,
                self._clock,
                self.observers,
                self._following,
                self._every,
                self._file.mistake,
            )
            with self._entering:
                if self._left:
                    raise LockLost("the process ends")
                # Before the lock is ours: the end of the process gives it back also then.
                self._acting = acting
            try:
                acting.__enter__()
            except BaseException:
                self._acting = None
                raise
            PassLog.write(LogEvent.LEADING)
        return self._acting

    def _leave(self) -> None:
        with self._entering:
            acting, self._acting = self._acting, None
        if acting is not None:
            acting.__exit__(None, None, None)
