"""`reconciler serve`: passes until stopped, on a schedule and when something changes."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import click

from jobs import options
from jobs.runtime.acting import NOBODY, Acting, Listeners, Yields
from jobs.runtime.clock import ServerClock, SystemClock
from jobs.runtime.environment import Target
from jobs.runtime.health import Document, HealthServer
from jobs.runtime.history_file import CaseHistory, HistoryFile, Past, recent_cases
from jobs.runtime.last_scrape import LastScrape
from jobs.runtime.live_page import LivePage
from jobs.runtime.log_line import LogEvent
from jobs.runtime.logs import PassLog, log_as_json
from jobs.runtime.outside import Wiring
from jobs.runtime.pass_loop import Cause, PassLoop
from jobs.runtime.readiness import LiveReadiness, read_apart
from jobs.runtime.settings_source import Look, SettingsFile, SettingsWarning, warn_of_no_settings
from jobs.runtime.shuffles import ShuffleCounter
from jobs.runtime.supervised import Ending, ended_by_signals, wait_until_set
from jobs.runtime.tracing_variables import tracing_of
from jobs.runtime.watching import FileWatcher, NodeWatcher
from reconciler.features.events.own_pod import OwnPodEvents
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.workloads import Workloads
from reconciler.model.drains import DrainProgress, Phase
from reconciler.model.errors import ClusterError, LockHeld, LockLost, SettingsError
from reconciler.model.problems import guarded
from reconciler.model.values import replace
from reconciler.passes.observe import wanted
from reconciler.run import PARTS, rehearse
from reconciler.settings.load import load_settings
from reconciler.settings.schema import Mode, Settings

log = logging.getLogger(__name__)

# Seconds: pauses after the lock was lost, and as a standby or after an error of the API server.
_SOON = 0.2
_AGAIN = 5.0


@click.command("serve")
@options.config
@options.cluster
@click.option(
    "--listen",
    type=options.ADDRESS,
    help="Serve /healthz, /readyz, /metrics and the page at / at this address: :8080 or 127.0.0.1:8080.",
)
@click.option(
    "--every",
    type=options.DURATION,
    default="30s",
    show_default=True,
    help="The longest time between two passes.",
)
@options.history
def command(
    config: Path, target: Target, listen: tuple[str, int] | None, every: timedelta, history: Path | None
) -> int:
    """Run passes until stopped, for a Deployment: on a schedule, and when a node changes.

    See docs/operating.md.
    """
    return serve(config, target, listen=listen, every=every, history=history)


def serve(
    config: Path,
    target: Target,
    *,
    listen: tuple[str, int] | None,
    every: timedelta,
    history: Path | None = None,
) -> int:
    """Run until SIGTERM. The next process continues the drains that have started.

    Raises SettingsError if the settings can't be used at the start, and first writes an Event on its own Pod:
    there are no last good ones. Cases that end are logged, and become lines of `history`, whose end the page
    shows from the start on; raises OutputError if that file can't be written at the start.
    """
    file = HistoryFile(history) if history is not None else None
    kept = CaseHistory(file, PassLog.history_failed, log=True)
    log_as_json()
    past = _past(file.path) if file is not None and listen is not None else None
    try:
        return _serve(config, target, listen=listen, every=every, history=kept, past=past)
    except SettingsError as error:
        warn_of_no_settings(error, target)
        raise


def _serve(
    config: Path,
    target: Target,
    *,
    listen: tuple[str, int] | None,
    every: timedelta,
    history: CaseHistory,
    past: Past | None = None,
) -> int:
    # First, so that mistakes in the settings are reported also if there are no credentials.
    load_settings(config, environment=os.environ)
    connection = Connection(target.kubeconfig, target.context)
    ending = Ending()
    with ExitStack() as open_things:
        open_things.callback(connection.close)
        open_things.enter_context(ended_by_signals(ending.stop))
        tracing = open_things.enter_context(tracing_of(os.environ, log.warning))
        listeners = Listeners(history=history, tracing=tracing)
        documents: dict[str, Callable[[], Document]] = {}
        if listen is not None:
            from jobs.runtime.metering import Meter

            meter = open_things.enter_context(Meter())
            listeners, documents = replace(listeners, counting=meter), {"/metrics": meter.document}
        last_scrape = LastScrape(ending)
        server = Serving(connection, target, config, every, ending, listeners)
        if past is not None:
            server.page.remember(past)
        if listen is not None:
            checks = {"/healthz": server.stuck, "/readyz": server.unready}
            documents |= {"/": server.page.document, "/api/v1/info": server.page.node_info}

            def report(error: Exception) -> None:
                listeners.counting.unexpected()
                PassLog.probe_failed(error)

            health = HealthServer(listen, checks, documents=documents, report=report)
            open_things.enter_context(health)
            open_things.callback(last_scrape.wait, health)
            PassLog.write(LogEvent.LISTENING, address="{}:{}".format(*health.address))
        open_things.enter_context(server)
        wait_until_set(ending.stop)
        last_scrape.wanted()
        PassLog.write(LogEvent.ENDING)
    if ending.error is not None:
        # Kubernetes starts the process again: a repetition inside it would not help.
        raise ending.error
    PassLog.write(LogEvent.ENDED)
    return 0


def _past(history: Path) -> Past | None:
    """Return the cases of the hours that the page looks back, as far as the file has them."""
    from reconciler.features.page.cases import BACK

    now = datetime.now(UTC)
    found, _ = guarded("the page", partial(recent_cases, history, now - BACK, now), None)
    return found


class Serving:
    """What a pass of `serve` is, and what starts it early: watches, the end of a drain, and the plan."""

    def __init__(
        self,
        connection: Connection,
        target: Target,
        config: Path,
        every: timedelta,
        ending: Ending,
        listeners: Listeners = NOBODY,
    ) -> None:
        """Prepare the loop. `every` is the longest time between two passes."""
        self._ending = ending
        self._clock = ServerClock(connection)
        readiness = LiveReadiness(partial(read_apart, target))
        self.page = LivePage(listeners.history, self._trouble, self._clock.now, readiness.known)
        """The page of the last pass. It also hands on the cases that have ended."""
        self._listeners = replace(listeners, on_progress=self._wake_after(Yields()), history=self.page)
        self._file = SettingsFile(config, SystemClock().now)
        self._acting: Acting | None = None
        self._lost = ""
        """The identity under which this process has lost the lock, until it acquires it again."""
        self._only_looking = Wiring(connection, target)
        own_pod = OwnPodEvents(connection, self._only_looking.itself)
        self._warning = SettingsWarning(lambda notice: own_pod.notify(notice, self._settings.time_zone))
        self._log = PassLog()
        self.shuffles = ShuffleCounter(Workloads(connection))
        """What a view of metrics shows of moved pods. It stays when another process has the lock."""
        self._began = time.monotonic()
        self._loop = PassLoop(self._run, every.total_seconds(), self._unexpected, ending)
        self._files = FileWatcher(config, self._loop.wake, ending)
        self._nodes = self._node_watcher()

    def __enter__(self) -> Serving:
        """Start, with the first pass at once."""
        PassLog.settings_loaded(self._settings)
        self._files.__enter__()
        self._nodes.__enter__()
        self._loop.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop: wait for the running pass, stop evictions, and release the lock."""
        with ExitStack() as things:
            things.callback(self._leave)
            things.callback(self._leave_nodes)
            things.push(self._loop)
            things.push(self._files)

    def _leave_nodes(self) -> None:
        """Leave the watch that there is by then: the last pass may have loaded settings, and made another."""
        self._nodes.__exit__()

    @property
    def _settings(self) -> Settings:
        """The settings in force."""
        return self._file.settings

    def _node_watcher(self) -> NodeWatcher:
        """Return a watch of the node fields that the current settings need."""
        return NodeWatcher(
            self._only_looking.connection, wanted(self._settings, PARTS), self._loop.wake, self._ending
        )

    def stuck(self) -> str:
        """Return why the process is stuck: no pass has ended for a long time. Else empty."""
        return self._loop.stuck()

    def unready(self) -> str:
        """Return why the process is not ready, or an empty text."""
        reasons = (
            self._loop.success.unready(),
            self._nodes.trouble(),
            self._files.trouble(),
            self._file.mistake(),
        )
        return "; ".join(reason for reason in reasons if reason)

    def _trouble(self) -> str:
        """Return what is wrong with this process, or an empty text."""
        return "; ".join(reason for reason in (self.stuck(), self.unready()) if reason)

    def _run(self) -> float | None:
        """Run one pass. Return in how many seconds to run the next one, None for the schedule."""
        self._began = time.monotonic()
        self._reload()
        self._requeue()
        try:
            wishes = (self._try_pass(), self._file.again())
        finally:
            self._warning.report(self._file.mistake())
            self._listeners.counting.settings(good=not self._file.mistake())
        return min((seconds for seconds in wishes if seconds is not None), default=None)

    def _unexpected(self, error: Exception, failures: int, again: float) -> None:
        """Report a pass that ended with an error of the program."""
        self._listeners.counting.unexpected()
        self._listeners.counting.failed(self._took())
        self._log.unexpected(error, failures, again)

    def _took(self) -> float:
        """Return the seconds since the start of the pass."""
        return time.monotonic() - self._began

    def _requeue(self) -> None:
        """Pass as often as the workflows of the settings ask for."""
        every = self._settings.profiles.intervals.requeue
        self._loop.at_least_every(every.total_seconds() if every is not None else None)

    def _try_pass(self) -> float | None:
        """Run one pass. Return in how many seconds the plan changes next, None for the schedule."""
        try:
            change = self._pass()
        except LockHeld as held:
            self._log.standby(held.holder)
            self._listeners.counting.stands_by()
            self.page.stands_by(held.holder)
            self._loop.success.good()
            return _AGAIN
        except LockLost as error:
            self._failed(error)
            self._lost = self._acting.identity if self._acting is not None else self._lost
            self._leave()
            # Take the lock again at once, or stand by. Writes wait until then.
            return _SOON
        except ClusterError as error:
            self._failed(error)
            return _AGAIN
        self._loop.success.good()
        self._listeners.counting.succeeded(self._took(), self._clock.now())
        # The moment may have come while the pass ran: then the next one is due at once.
        return None if change is None else max((change - self._clock.now()).total_seconds(), 0.0)

    def _failed(self, error: Exception) -> None:
        self._log.trouble(error)
        self._listeners.counting.failed(self._took())

    def _reload(self) -> None:
        """Load the settings again if the file has changed. Invalid settings are reported, and not used."""
        found = self._file.look()
        if found is Look.SAME:
            return
        if found is Look.REJECTED:
            because = self._file.rejection.because if self._file.rejection is not None else ""
            PassLog.settings_rejected(because, self._settings)
            return
        PassLog.settings_loaded(self._settings)
        if found is Look.RESTORED:
            return
        self._nodes.__exit__()
        self._nodes = self._node_watcher()
        self._nodes.__enter__()
        if self._acting is not None:
            self._acting.settings = self._settings

    def _pass(self) -> datetime | None:
        if self._settings.mode is Mode.OBSERVE:
            self._leave()
            outside = self._only_looking.to_read(self._settings)
            with self._listeners.tracing.passing() as seen:
                plan = rehearse(outside, self._settings, self._clock.now())
                seen(plan, ())
            self._listeners.counting.after(plan, {})
            self.page.after(plan, (), self._settings, rehearsed=True)
            self._log.write_pass(plan, (), rehearsed=True)
            return plan.next_change
        plan, outcomes = self._enter().run_pass()
        self.page.after(plan, outcomes, self._settings, rehearsed=False)
        self._log.write_pass(plan, outcomes, rehearsed=False)
        counted = self._settings.profiles.shuffle_counts
        if counted:
            self.shuffles.after(plan, outcomes)
        self._listeners.counting.shuffled(self.shuffles.counts.rows if counted else ())
        return plan.next_change

    def _enter(self) -> Acting:
        if self._acting is None:
            looking = self._only_looking
            acting = Acting(
                looking.connection, looking.target, self._settings, self._clock, self._listeners, self._lost
            )
            acting.__enter__()
            self._acting, self._lost = acting, ""
            PassLog.write(LogEvent.LEADING)
        return self._acting

    def _leave(self) -> None:
        if self._acting is not None:
            acting, self._acting = self._acting, None
            acting.__exit__(None, None, None)

    def _wake_after(self, yields: Yields) -> Callable[[DrainProgress], None]:
        """Return what begins a pass when a drain ends, or gives its slot away."""

        def look(progress: DrainProgress) -> None:
            if progress.phase is not Phase.RUNNING or yields.see(progress):
                self._loop.wake(Cause(f"drain of {progress.node}", urgent=True))

        return look
