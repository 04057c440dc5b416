"""What a feature gives to a process beside its passes: the value `PROCESS` in the `process.py` of its folder.

A part that a feature does not need is left out. Every command that makes passes asks all features for these
parts, so a `process.py` imports what it makes only when it makes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache, reduce, wraps
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from msgspec import Struct, field

from jobs.runtime.environment import Target
from jobs.runtime.log_line import write_events
from jobs.runtime.metrics import Family, Sample
from reconciler import plugins
from reconciler.model.errors import LockLost, ReconcilerError
from reconciler.model.problems import internal

if TYPE_CHECKING:
    from pathlib import Path

    from jobs.runtime.health import Make
    from jobs.runtime.machines import Makers
    from reconciler.http.retrying import Guard
    from reconciler.kubernetes.cluster import Cluster
    from reconciler.kubernetes.connection import Connection
    from reconciler.model import snapshot
    from reconciler.model.content import ConfigMapName
    from reconciler.model.drains import DrainOrder, DrainProgress, Eviction
    from reconciler.model.ended_case import EndedCase
    from reconciler.model.explanation import KnownMove
    from reconciler.model.findings import KnownFindings
    from reconciler.model.outcome import Outcome
    from reconciler.model.panels import Panel
    from reconciler.model.plan import Notice, Plan
    from reconciler.model.ports import CalendarReader, Clock, Evictor, Notification, Notifier, Outbox
    from reconciler.model.sayings import Deed
    from reconciler.settings.schema import Settings

Value = TypeVar("Value")
Listener = TypeVar("Listener", bound="Observer | Companion")
Command = Callable[..., int]
Option = Callable[[Command], Command]
Seen = Callable[["Plan", Sequence["Outcome"]], None]
"""Gets what a pass has decided and done."""


class Passed(Struct, frozen=True):
    """A pass: its plan, what came of it, the settings that it followed, and the drains by node."""

    plan: Plan
    settings: Settings
    outcomes: tuple[Outcome, ...] = ()
    rehearsed: bool = True
    drains: Mapping[str, DrainProgress] = field(default_factory=dict)


class Past(Struct, frozen=True):
    """Cases that an earlier process has written, in the order of their ends.

    `since` is from when on they are known (UTC).
    """

    since: datetime
    cases: tuple[EndedCase, ...]


class Observer:
    """Sees what a process does, and does nothing. A feature overrides what it needs.

    The methods may be called from any thread. What one that notes something raises is logged, and harms
    nothing else. Entering begins, and leaving ends, for a short time at most.
    """

    last_read = ""
    """The path of a document whose reader shall see its last state before the process ends."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    @property
    def documents(self) -> Mapping[str, Make]:
        """What the HTTP server sends, by path."""
        return {}

    def past(self, since: datetime, now: datetime) -> Past | None:
        """Return the cases that ended from `since` to `now` (aware) before this process; None: not known."""

    def panels(self, passed: Passed, findings: KnownFindings | None) -> Sequence[Panel]:
        """Return what a page of this pass shows first; `findings` are known to keep nodes from a drain.

        It may be called later than the next pass.
        """
        return ()

    def settings(self, *, good: bool) -> None:
        """Note whether the settings file can be used."""

    def leads(self, *, leads: bool) -> None:
        """Note whether this process holds the lock."""

    def stands_by(self, holder: str) -> None:
        """Note a pass while another process has the lock."""

    @contextmanager
    def passing(self) -> Iterator[Seen]:
        """Enter before a pass and leave after it, in its thread."""
        yield lambda plan, outcomes: None

    def after(self, passed: Passed) -> None:
        """Note what a pass has decided and done."""

    def succeeded(self, seconds: float, now: datetime) -> None:
        """Note that a pass has ended `now` (aware) without an error, and how long it took."""

    def failed(self, seconds: float) -> None:
        """Note that a pass has ended with an error, and how long it took."""

    def unexpected(self) -> None:
        """Note an error in this program."""

    def keep(self, cases: Sequence[EndedCase]) -> None:
        """Note the cases that have ended."""

    def happened(self, event: str, fields: Mapping[str, object]) -> None:
        """Note a line of a log that is worth keeping with the cases that end. It must not wait."""

    def ordered(self, order: DrainOrder) -> None:
        """Note an order to drain a node. The same order may come again."""

    def progressed(self, progress: DrainProgress) -> None:
        """Note the progress of a drain."""

    def drains(self, drains: Mapping[str, DrainProgress]) -> None:
        """Note the progress of all drains at the end of a run, by node."""

    def stopped(self) -> None:
        """Note that this process drains no more."""

    def evictor(self, evictor: Evictor) -> Evictor:
        """Return what does the same, and is observed."""
        return evictor

    def refused(self, reason: str) -> None:
        """Note an eviction that was refused; see `refusal_reason`."""

    def notice(self, transport: str, *, sent: bool) -> None:
        """Note an attempt to send notices."""

    def waiting(self, messages: int | None) -> None:
        """Note how many messages wait to be sent, None if nobody gets any."""

    def samples(self) -> Iterable[Sample]:
        """Return the metrics of its feature as they are now."""
        return ()


class Surroundings(Struct, frozen=True):
    """What an observer may know of its process.

    `given` are the values of the options that features have added to the command. `warn` tells a person.
    `listens` says that documents are served. `trouble` returns what is wrong with the process, empty if
    nothing is. `look` rehearses a pass, for a process that makes none because another one has the lock; it
    raises ClusterError.
    """

    command: str
    given: Mapping[str, Any]
    warn: Callable[[str], object]
    target: Target = Target()
    connection: Connection | None = None
    listens: bool = False
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    trouble: Callable[[], str] = str
    look: Callable[[], Passed] | None = None


class _EventLog(Observer):
    """Logs each line of a log that features keep."""

    def happened(self, event: str, fields: Mapping[str, object]) -> None:
        """Log it."""
        write_events(event, fields)


def inform(listeners: Iterable[Listener], say: Callable[[Listener], object]) -> None:
    """Say to each of these observers, or companions, what happens; raises LockLost.

    The boundary around what a feature is told: its error harms no other feature, no pass and no drain.
    """
    for each in listeners:
        try:
            say(each)
        except LockLost:
            raise
        except Exception as error:  # noqa: BLE001 - any feature may be behind it
            internal(f"{type(each).__name__} misses what happens", error)


class Observers(Observer):
    """Hands all on to each of these observers, in their order."""

    def __init__(self, *observers: Observer) -> None:
        self._all = list(observers)
        self._open = ExitStack()

    def add(self, around: Surroundings) -> Self:
        """Add the observers of all features, and in `serve` one that logs what they keep in a log.

        Raises OutputError for an option that can't be followed.
        """
        # What other commands print is for people.
        self._all += [_EventLog()] if around.command == "serve" else []
        made = (process.observer(around, self) for process in processes() if process.observer)
        self._all += [observer for observer in made if observer is not None]
        return self

    def __enter__(self) -> Self:
        for observer in self._all:
            self._open.enter_context(observer)
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)

    @property
    def last_read(self) -> str:  # type: ignore[override]  # theirs is a constant
        """The first path that one of them names."""
        return next((observer.last_read for observer in self._all if observer.last_read), "")

    @property
    def documents(self) -> Mapping[str, Make]:
        """Those of all."""
        return {path: make for observer in self._all for path, make in observer.documents.items()}

    def past(self, since: datetime, now: datetime) -> Past | None:
        """Return what the first of them knows."""
        known = (observer.past(since, now) for observer in self._all)
        return next((past for past in known if past is not None), None)

    def panels(self, passed: Passed, findings: KnownFindings | None) -> Sequence[Panel]:
        """Return those of all."""
        return [panel for observer in self._all for panel in observer.panels(passed, findings)]

    @contextmanager
    def passing(self) -> Iterator[Seen]:
        """Enter and leave all."""
        with ExitStack() as stack:
            seen = {observer: stack.enter_context(observer.passing()) for observer in self._all}
            yield lambda plan, outcomes: self._tell(lambda observer: seen[observer](plan, outcomes))

    def evictor(self, evictor: Evictor) -> Evictor:
        """Return what all of them observe."""
        return reduce(lambda inner, observer: observer.evictor(inner), self._all, evictor)

    def samples(self) -> Iterable[Sample]:
        """Return those of all."""
        return [sample for observer in self._all for sample in observer.samples()]

    # The rest is handed on as it comes.

    def settings(self, *, good: bool) -> None:
        self._tell(lambda observer: observer.settings(good=good))

    def leads(self, *, leads: bool) -> None:
        self._tell(lambda observer: observer.leads(leads=leads))

    def stands_by(self, holder: str) -> None:
        self._tell(lambda observer: observer.stands_by(holder))

    def after(self, passed: Passed) -> None:
        self._tell(lambda observer: observer.after(passed))

    def succeeded(self, seconds: float, now: datetime) -> None:
        self._tell(lambda observer: observer.succeeded(seconds, now))

    def failed(self, seconds: float) -> None:
        self._tell(lambda observer: observer.failed(seconds))

    def unexpected(self) -> None:
        self._tell(lambda observer: observer.unexpected())

    def keep(self, cases: Sequence[EndedCase]) -> None:
        self._tell(lambda observer: observer.keep(cases))

    def happened(self, event: str, fields: Mapping[str, object]) -> None:
        self._tell(lambda observer: observer.happened(event, fields))

    def ordered(self, order: DrainOrder) -> None:
        self._tell(lambda observer: observer.ordered(order))

    def progressed(self, progress: DrainProgress) -> None:
        self._tell(lambda observer: observer.progressed(progress))

    def drains(self, drains: Mapping[str, DrainProgress]) -> None:
        self._tell(lambda observer: observer.drains(drains))

    def stopped(self) -> None:
        self._tell(lambda observer: observer.stopped())

    def refused(self, reason: str) -> None:
        self._tell(lambda observer: observer.refused(reason))

    def notice(self, transport: str, *, sent: bool) -> None:
        self._tell(lambda observer: observer.notice(transport, sent=sent))

    def waiting(self, messages: int | None) -> None:
        self._tell(lambda observer: observer.waiting(messages))

    def _tell(self, said: Callable[[Observer], object]) -> None:
        inform(self._all, said)

    def rehearsed(self, settings: Settings, rehearse: Callable[[], Plan]) -> tuple[Plan, tuple[Outcome, ...]]:
        """Return the plan of a rehearsal, and no outcomes, and show them."""
        with self.passing() as seen:
            plan = rehearse()
            seen(plan, ())
        self.after(Passed(plan, settings))
        return plan, ()

    def timed(self, run: Callable[[], Value]) -> Value:
        """Return what a pass returns, and say how it ended, and how long it took."""
        began = time.monotonic()
        try:
            done = run()
        except ReconcilerError:
            self.failed(time.monotonic() - began)
            raise
        self.succeeded(time.monotonic() - began, datetime.now(UTC))
        return done


class Leading(Struct, frozen=True):
    """What a companion needs. `guard` raises LockLost if the lock is not ours, `eviction_guard` also before
    the eviction of our own pod. Without `settings`, a person drains by hand, and there is no lock. `mistake`
    returns why the newest settings can't be used, empty if they can. `goes_on`: passes follow each other, as
    in `serve`. `did` tells all companions what a person did.
    """

    connection: Connection
    cluster: Cluster
    target: Target
    itself: snapshot.Self
    clock: Clock
    guard: Guard
    eviction_guard: Guard
    observers: Observer
    drains: Callable[[], Mapping[str, DrainProgress]] = dict
    settings: Callable[[], Settings] | None = None
    warn: Callable[[str], None] | None = None
    mistake: Callable[[], str] = str
    goes_on: bool = False
    did: Callable[[Deed], None] = lambda deed: None


class Companion:
    """What runs beside the passes of a process that has the lock, and does nothing."""

    def before(self, settings: Settings) -> Outbox | None:
        """Get ready for a pass; return what keeps its messages of profiles, None if this does not."""

    def after(self, plan: Plan, outcomes: tuple[Outcome, ...], notifier: Notifier) -> Sequence[str]:
        """Do what follows from a pass; return what its notes say of it. Raises LockLost."""
        return ()

    def drains(self) -> None:
        """Get ready for the first drain."""

    def evicted(self, order: DrainOrder, eviction: Eviction) -> None:
        """Note that a pod was evicted, or deleted; called from the drainer's threads, so it must not wait."""

    def ended(self, cases: Sequence[EndedCase]) -> None:
        """Note the cases that have ended. It must not wait."""

    def did(self, deed: Deed) -> None:
        """Note what a person did. It may be called from any thread, and must not wait."""

    def close(self) -> None:
        """Do what is due, for a short time, and end."""


class EventWriter(Protocol):
    """Writes Events about what a person does. Both methods raise ClusterError."""

    def send(self, notification: Notification) -> None:
        """Write an Event on a node."""

    def send_about_config_map(self, namespace: str, name: str, notice: Notice) -> None:
        """Write an Event on a ConfigMap."""


class Ports(Struct, frozen=True):
    """What a feature needs to make ports of a pass; without a guard, nothing can be written."""

    connection: Connection
    target: Target
    guard: Guard | None


class PassPorts(Struct, frozen=True):
    """The ports of a pass that a feature makes. None: another one makes it, or the settings need none.

    `clients` are by the name of their `Port`.
    """

    notifier: Notifier | None = None
    clients: Mapping[str, Any] = field(default_factory=dict)


class Reported(Struct, frozen=True):
    """What a report is about, or a sweep that only looks."""

    plan: Plan
    settings: Settings
    connection: Connection
    target: Target


class ReportForm(Struct, frozen=True):
    """A form of a report that shows the whole fleet: what makes the text, and its media type."""

    text_of: Callable[[Reported], str]
    media_type: str


class AskedPod(Struct, frozen=True):
    """A pod of which a person asks what became of it, with the cluster, and the options of features."""

    connection: Connection
    target: Target
    namespace: str
    name: str
    given: Mapping[str, Any] = field(default_factory=dict)


class LastGood(Struct, frozen=True):
    """The text of the settings that a pass has used last, and what it is called in a sentence."""

    content: bytes
    name: str


class Viewed(Struct, frozen=True):
    """What a command is asked, of which a feature shows a view of its own.

    `files` are read instead of the cluster, if there are any. `node` is only this one, and `since` only what
    is not older. `output` is the form of the output.
    """

    files: tuple[Path, ...]
    node: str | None
    since: timedelta | None
    output: str
    target: Target
    config: Path | ConfigMapName | None = None


class Process(Struct, frozen=True):
    """What a feature gives to a process.

    `options` are those that it adds to commands, by the name of the command. `observer` returns what sees
    the process, None if nothing has to; it also gets all observers together. `companion` runs while the
    process has the lock. `ports` returns a function that returns, for settings, the ports of a pass; it is
    asked again for other settings only. `machines` returns likewise what makes the client of each
    machine provider. `calendars` reads calendars, those in objects only with a connection.

    `looked` sees a sweep in mode Observe, with all observers together. Nobody has the lock then, so all that
    it may write are lines that the cluster keeps (`kubernetes/kept_lines.py`); it raises nothing. `panels`
    returns what a page of a report shows first, as `Observer.panels` does for that of a process.

    `own_pod` returns what writes an Event on our own Pod, with moments in this zone, and whether it was
    written. `by_hand` writes the Events of a person's commands. `findings` returns what is known of what
    would keep nodes from a drain, read at once on a connection, or else in a thread of its own. `forms` are
    those of a report, by the value of `--output`, `notes` what a report says besides. `config_maps` are those
    that it makes in our namespace. `moves` returns what it keeps of how a pod was moved, also one that is
    gone, and sentences about what it could not read; it raises `click.ClickException` for an option that
    can't be followed. `last_good` returns what it keeps in a namespace of the settings that a pass has used
    last, or in words why there is nothing; it raises nothing. `views` are what a command shows instead, by
    the name of the option of the feature that asks for it; each returns the exit code.
    """

    options: Mapping[str, tuple[Option, ...]] = field(default_factory=dict)
    observer: Callable[[Surroundings, Observer], Observer | None] | None = None
    companion: Callable[[Leading], Companion | None] | None = None
    looked: Callable[[Reported, Observer], None] | None = None
    panels: Callable[[Reported, KnownFindings | None], Sequence[Panel]] | None = None
    ports: Callable[[Ports], Callable[[Settings], PassPorts]] | None = None
    machines: Callable[[Ports], Callable[[Settings], Makers]] | None = None
    calendars: Callable[[Connection | None], CalendarReader] | None = None
    own_pod: Callable[[Connection, snapshot.Self], Callable[[Notice, tzinfo], bool]] | None = None
    by_hand: Callable[[Connection, tzinfo], EventWriter] | None = None
    findings: Callable[[Target, Connection | None], Callable[[Settings], KnownFindings]] | None = None
    forms: Mapping[str, ReportForm] = field(default_factory=dict)
    notes: Callable[[Reported], tuple[str, ...]] | None = None
    config_maps: tuple[str, ...] = ()
    moves: Callable[[AskedPod], tuple[Sequence[KnownMove], Sequence[str]]] | None = None
    last_good: Callable[[Connection, str], LastGood | str] | None = None
    families: tuple[Family, ...] = ()
    views: Mapping[str, Callable[[Viewed], int]] = field(default_factory=dict)


def view_of(given: Mapping[str, Any]) -> Callable[[Viewed], int] | None:
    """Return what shows the view that one of these options of features asks for, None if none does."""
    views = {name: view for process in processes() for name, view in process.views.items()}
    return next((views[name] for name, value in given.items() if value and name in views), None)


@cache
def processes() -> tuple[Process, ...]:
    """Return what each feature gives, in their order."""
    return tuple(module.PROCESS for module in plugins.modules("process"))


def ports_made_by(makers: Iterable[Callable[[Settings], PassPorts]], settings: Settings) -> PassPorts:
    """Return the ports of all features as one, from what their `ports` have returned."""
    made = [ports_of(settings) for ports_of in makers]
    return PassPorts(
        next((each.notifier for each in made if each.notifier is not None), None),
        {name: client for each in made for name, client in each.clients.items()},
    )


def first(part: str) -> Any:
    """Return this part of the first feature that has it, None if none has."""
    return next((value for each in processes() if (value := getattr(each, part)) is not None), None)


def companions_of(leading: Leading) -> Sequence[Companion]:
    """Return what features let run beside the passes."""
    made = (process.companion(leading) for process in processes() if process.companion)
    return [companion for companion in made if companion is not None]


def evicted(companions: Sequence[Companion], order: DrainOrder, eviction: Eviction) -> None:
    """Tell all that a pod was evicted, or deleted."""
    inform(companions, lambda companion: companion.evicted(order, eviction))


def options_of_features(command: str) -> Option:
    """Return a decorator that adds the options of features to a command, with their values as `given`."""
    options = [option for process in processes() for option in process.options.get(command, ())]

    def decorate(run: Command) -> Command:
        names: list[str] = []

        @wraps(run)
        def with_given(**values: Any) -> int:
            given = {name: values.pop(name) for name in names}
            return run(**values, given=given)

        decorated: Any = with_given
        before = len(getattr(run, "__click_params__", ()))
        for option in reversed(options):
            decorated = option(decorated)
        names += [parameter.name for parameter in getattr(decorated, "__click_params__", ())[before:]]
        done: Command = decorated
        return done

    return decorate


def own_pod_events(
    connection: Connection, itself: snapshot.Self, zone: Callable[[], tzinfo] = lambda: UTC
) -> Callable[[Notice], bool]:
    """Return what writes an Event on our own Pod, and whether it was written; without a feature, it is."""
    make = first("own_pod")
    if make is None:
        return lambda notice: True
    write = make(connection, itself)
    return lambda notice: write(notice, zone())
