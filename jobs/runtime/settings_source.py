"""Where the settings come from: a file, or the ConfigMap of the cluster."""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum, auto
from pathlib import Path
from textwrap import wrap

from msgspec import Struct, structs

from jobs.runtime.clock import ServerClock
from jobs.runtime.environment import Target, VariablesAsWritten, connected, itself
from jobs.runtime.output import echo, for_programs, width
from jobs.runtime.process import LastGood, first, own_pod_events
from reconciler.calendar.values import in_zone
from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.cluster_name import name_cluster
from reconciler.kubernetes.config_maps import HeldSettings, read_installed
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.reconcilers import read_rivals
from reconciler.model import limits
from reconciler.model.content import CalendarText, ConfigMapName, Holder, short_hash
from reconciler.model.errors import ClusterError, SettingsError
from reconciler.model.moments import to_text
from reconciler.model.plan import Notice, NoticeType
from reconciler.model.reconciler import Reconciler, running
from reconciler.model.snapshot import Ledger
from reconciler.model.values import replace
from reconciler.report import safe
from reconciler.report.acting import acting_lines, cluster_words
from reconciler.report.lines import Line
from reconciler.report.values import Document
from reconciler.settings.load import (
    content_of,
    instead_of_rejected,
    load_settings,
    parse_content,
    parse_settings,
    read_settings,
)
from reconciler.settings.schema import Settings

SETTLE = 5.0
"""Seconds for which a missing or empty file changes nothing. An editor may write a file in two steps."""


class Look(Enum):
    """What a look at the file found."""

    SAME = auto()
    LOADED = auto()
    """Other settings apply now."""

    REJECTED = auto()
    """The file can't be used. The settings before still apply."""

    RESTORED = auto()
    """The file has the settings in force again."""


class Rejection(Struct, frozen=True):
    """Why the file can't be used, and since when (UTC)."""

    since: datetime
    because: str


class SettingsFile:
    """A settings file, and the settings in force: the last ones that could be used."""

    def __init__(
        self,
        path: Path,
        now: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
        *,
        shows_rejected: bool = False,
    ) -> None:
        """Load the file. `now` is the wall clock (UTC), `monotonic` a clock in seconds.

        Without a last good one there is nothing to apply. That raises SettingsError, or with `shows_rejected`
        gives settings by which nobody acts until the file is repaired.
        """
        self._path, self._now, self._monotonic = path, now, monotonic
        self.rejection: Rejection | None = None
        self._judged = self._digest()[0]
        self._in_force: bytes | None = self._judged
        try:
            self.settings: Settings = load_settings(path, now(), os.environ)
        except SettingsError as error:
            if not shows_rejected:
                raise
            self.settings, self._in_force = instead_of_rejected(error), None
            self.rejection = Rejection(now(), str(error))
        self._doubtful_since: float | None = None

    def look(self) -> Look:
        """Read the file, and take its settings if they are new and can be used. It raises nothing."""
        digest, content = self._digest()
        if digest == self._judged:
            self._doubtful_since = None
            return Look.SAME
        if not content and not self._settled():
            return Look.SAME
        self._judged, self._doubtful_since = digest, None
        now = self._now()
        try:
            settings = self._loaded(now) if content is None else self._parsed(content, now)
        except Exception as error:  # noqa: BLE001 - whatever is in the file, the previous settings apply
            known = isinstance(error, SettingsError)
            because = str(error) if known else f"{type(error).__name__}: {error}"
            self.rejection = Rejection(now, because)
            return Look.REJECTED
        if digest == self._in_force:
            self.rejection = None
            return Look.RESTORED
        self.settings, self._in_force, self.rejection = settings, digest, None
        return Look.LOADED

    def again(self) -> float | None:
        """Return in how many seconds the file must be read again, None if the schedule is enough."""
        if self._doubtful_since is None:
            return None
        return max(0.0, self._doubtful_since + SETTLE - self._monotonic())

    def mistake(self) -> str:
        """Return what is wrong with the file, and which settings still apply; empty if nothing is."""
        rejection, version = self.rejection, self.settings.version
        if rejection is None:
            return ""
        in_force = f"those of hash {version.hash} still apply" if version else "the previous ones still apply"
        if self.settings.rejected:
            in_force = "there are no earlier ones, so nobody acts on any node"
        return f"settings rejected at {to_text(rejection.since)}, {in_force}: {rejection.because}"

    def _loaded(self, now: datetime) -> Settings:
        return load_settings(self._path, now, os.environ)

    def _parsed(self, content: bytes, now: datetime) -> Settings:
        return parse_content(content, str(self._path), now, os.environ, folder=self._path.parent)

    def _digest(self) -> tuple[bytes, bytes | None]:
        """Return a digest of the content, and the content; an empty digest and None if it can't be read."""
        try:
            content = read_settings(self._path)
        except OSError:
            return b"", None
        return hashlib.sha256(content).digest(), content

    def _settled(self) -> bool:
        """Whether the file has been missing or empty for long enough to be meant."""
        now = self._monotonic()
        if self._doubtful_since is None:
            self._doubtful_since = now
        return now - self._doubtful_since >= SETTLE


SettingsSource = Path | ConfigMapName


class RefusedSettings(Struct, frozen=True):
    """A text of the settings that can't be used: where it is, its hash, and every mistake."""

    source: str
    hash: str
    mistakes: tuple[str, ...]


class SettingsInUse(Struct, frozen=True):
    """The settings that a command asks, and where they are from.

    `defaults` says why they are the default settings, empty where they are not. `refused` is the newest text
    where they are the last good ones, which a reconciler goes on with. `cluster` and `context` name the
    cluster that was asked for them, empty if none was.
    """

    settings: Settings
    source: str
    defaults: str = ""
    cluster: str = ""
    context: str = ""
    refused: RefusedSettings | None = None

    @property
    def instead(self) -> str:
        """The first line of the output where they are not the installed settings, else empty.

        Its moments are UTC.
        """
        if self.refused is None:
            return self.defaults
        mistakes = self.refused.mistakes
        more = f" (and {limits.count_of(len(mistakes) - 1, 'more mistake')})" if len(mistakes) > 1 else ""
        return f"settings rejected: {limits.text(mistakes[0])}{more}; answers from {self.source}"

    @property
    def exit_code(self) -> int:
        """That of a command that has shown what the settings mean: 2 if they can't be used."""
        return 2 if self.settings.rejected else 0

    def named_in(self, document: Mapping[str, object]) -> Document:
        """Return the document with which settings these are, and why they are not the installed ones."""
        version = self.settings.version
        policy = {
            "source": self.source,
            "hash": version.hash if version is not None else None,
            "mode": self.settings.mode.value,
            "cluster": self.settings.cluster or self.cluster or None,
            "context": self.context or None,
        }
        refused = structs.asdict(self.refused) if self.refused is not None else None
        return {
            **document,
            "policy": policy,
            "defaultSettings": self.defaults or None,
            "refusedSettings": refused,
        }

    def first_lines(
        self, output: str = "text", reconciler: Reconciler | None = None, now: datetime | None = None
    ) -> tuple[Line, ...]:
        """Return what to print above a text for people, folded on a narrow terminal.

        They are, in red, why the settings are not the installed ones, and who acts on the nodes `now` (aware)
        in which cluster; only the cluster, if that was not read. That nobody acts comes first. Of a document
        for programs, only the line about the settings is returned, and stands beside it.
        """
        if for_programs(output):
            return (Line(self.instead, beside=True),) if self.instead else ()
        columns, acts = width(output), tuple[Line, ...]()
        text = in_zone(self.instead, self.settings.time_zone)
        text = safe.markdown(text) if output == "markdown" else safe.line(text)
        instead = tuple(
            Line(part, alarm=True) for part in (wrap(text, columns) if columns else [text] * bool(text))
        )
        if reconciler is not None and now is not None:
            acts = acting_lines(reconciler, now, self.settings.time_zone, columns)
        elif cluster := self.settings.cluster or self.cluster:
            acts = (Line(cluster_words(cluster, self.context)),)
        return acts + instead if any(line.alarm for line in acts) else instead + acts


def settings_to_show(source: SettingsSource | None, target: Target, now: datetime) -> SettingsInUse:
    """Return the same as `settings_in_use` for a command that only shows what is announced.

    Where the installed settings can't be used, no last good ones are kept, and no reconciler runs, they are
    the default ones: somebody has to see the nodes that nobody guards.
    """
    try:
        return settings_in_use(source, target, now)
    except SettingsError as error:
        if source is not None or target.namespace != Target().namespace:
            raise
        from jobs.runtime.outside import reconciler_of

        with connected(target) as connection:
            if reconciler_of(connection, target, None).runs is not False:
                raise
        echo(str(error), err=True)
        mistakes = error.__cause__ if isinstance(error.__cause__, SettingsError) else error
        defaults = "default settings: the installed ones have a mistake, and no reconciler runs"
        return SettingsInUse(instead_of_rejected(mistakes), "default settings", defaults)


def settings_in_use(source: SettingsSource | None, target: Target, now: datetime) -> SettingsInUse:
    """Return the settings of a source, or without one those that are installed in the cluster.

    Where none are installed, or they may not be read, the default settings apply, and the policy says so. In
    a namespace that a person has named, that is a mistake.
    Instead of installed settings that can't be used, also by the name of their ConfigMap, the last good ones
    are returned. Without them, and for any other source, that raises SettingsError with every mistake;
    ClusterError if the API server does not answer or refuses us. `now` is aware.
    """
    if source is not None:
        try:
            return _named(source, target, now)
        except SettingsError:
            if not isinstance(source, ConfigMapName) or source.namespace != target.namespace:
                raise
            with connected(target) as connection:
                installed = read_installed(connection, target.namespace)
            if isinstance(installed, str) or installed.name != source:
                raise
    with connected(target) as connection:
        installed = read_installed(connection, target.namespace)
        name_cluster(connection, "")
        cluster, context = connection.cluster, connection.origin.context
        if isinstance(installed, str):
            remedy = "pass --config"
            if target.namespace != Target().namespace:
                # The default settings would be no answer.
                leave_out = f"leave out --reconciler-namespace to ask the one in {Target().namespace}"
                raise SettingsError((f"{installed}; {leave_out}, or {remedy}",))
            # The reconciler may be in another namespace.
            rivals = read_rivals(connection, target.namespace, ServerClock(connection).now)
            if elsewhere := running(rivals):
                where = elsewhere[0].lock
                option = f"pass --reconciler-namespace {where}"
                remedy = f"a reconciler runs in the namespace {where}: {option}; else {remedy}"
            defaults = f"default settings: {installed}; {remedy}"
            return SettingsInUse(parse_settings("", ""), "default settings", defaults, cluster, context)
        name = str(installed)
        try:
            settings = parse_content(installed.content, name, now, VariablesAsWritten(os.environ))
        except SettingsError as error:
            return instead_of_refused(connection, target.namespace, now, installed, error)
        return SettingsInUse(settings, name, "", cluster, context)


def last_good(connection: Connection, namespace: str, now: datetime | None) -> SettingsInUse | str:
    """Return the settings that a pass has used last, as a feature keeps them.

    Else return in words why they are not known, empty if nothing keeps them. They are loaded `now` (aware;
    None: not known).
    """
    find = first("last_good")
    kept: LastGood | str = find(connection, namespace) if find is not None else ""
    if isinstance(kept, str):
        return kept
    try:
        settings = parse_content(kept.content, kept.name, now, VariablesAsWritten(os.environ))
    except SettingsError as error:
        # Another version of this program may have used them.
        return f"the last good ones can't be used either: {error.mistakes[0]}"
    return SettingsInUse(settings, kept.name, "", connection.cluster, connection.origin.context)


def instead_of_refused(
    connection: Connection, namespace: str, now: datetime | None, held: HeldSettings, error: SettingsError
) -> SettingsInUse:
    """Return the last good settings where those that are held can't be used, as `error` says.

    Raises SettingsError with every mistake, and why there are no last good ones.
    """
    used = last_good(connection, namespace, now)
    if isinstance(used, SettingsInUse):
        return replace(used, refused=RefusedSettings(str(held), short_hash(held.content), error.mistakes))
    goes_on = (
        "a reconciler that runs goes on with its last good settings: `reconciler page` shows what it "
        "does; other commands take them with --config FILE"
    )
    raise SettingsError((*error.mistakes, *([used] if used else []), goes_on)) from error


def settings_from(source: SettingsSource, target: Target, now: datetime, *, acts: bool = False) -> Settings:
    """Return the settings of a file or a ConfigMap, loaded `now` (aware).

    The API server is asked for a ConfigMap only. Its variables are those of a Pod: they stay as they are
    written where a command only shows what the settings mean, and who `acts` needs each of them. Raises
    SettingsError with every mistake, and ClusterError if the API server does not answer or refuses us.
    """
    return _named(source, target, now, acts=acts).settings


def _named(source: SettingsSource, target: Target, now: datetime, *, acts: bool = False) -> SettingsInUse:
    """Return the settings that a person names; see `settings_from`."""
    cluster = context = ""
    folder, variables = None, os.environ if acts else VariablesAsWritten(os.environ)
    if isinstance(source, Path):
        name, content, folder, variables = str(source), content_of(source), source.parent, os.environ
    else:
        from reconciler.kubernetes.config_maps import read_settings as read_config_map

        with connected(target) as connection:
            held = read_config_map(connection, source)
            name, content = str(held), held.content
            cluster, context = connection.cluster, connection.origin.context
    settings = parse_content(content, name, now, variables, folder=folder)
    return SettingsInUse(settings, str(source), "", cluster, context)


log = logging.getLogger(__name__)

REJECTED = "SettingsRejected"
"""The reason of the Event, also in alerts of people."""

ACCEPTED = "SettingsAccepted"
"""The reason of the Event that ends it."""

REPEAT = 3600.0
"""Seconds until the same warning is written again. An API server keeps an Event for an hour by default."""

APART = 60.0
"""Seconds between two Events of a reason, also if the file keeps changing or an Event can't be written."""


class SettingsWarning:
    """Writes one Event for each mistake, again while the mistake stays, and one when it is repaired."""

    def __init__(
        self, notify: Callable[[Notice], bool], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """`notify` writes an Event, and returns whether it was written; `monotonic` is a clock in seconds."""
        self._notify, self._monotonic = notify, monotonic
        self._written = ""
        self._open = False
        """Whether a warning may be there without the Event that it is over."""
        self._tried: dict[str, float] = {}
        """When an Event was tried last, by its reason."""

    def report(self, mistake: str) -> None:
        """Write the Event that there is to write; an empty text says that nothing is wrong."""
        if not mistake and not self._open:
            return
        notice = Notice(ACCEPTED, "the newest settings are in use again")
        if mistake:
            notice = Notice(REJECTED, mistake, NoticeType.WARNING)
        now, tried = self._monotonic(), self._tried.get(notice.reason)
        wait = REPEAT if mistake and mistake == self._written else APART
        if tried is not None and now - tried < wait:
            return
        self._tried[notice.reason] = now
        written = self._notify(notice)
        # A warning without an answer may come later.
        self._open = bool(mistake) or not written
        if written:
            self._written = mistake


def warn_of_no_settings(error: SettingsError, target: Target) -> None:
    """Write the Event about settings without which `serve` can't start; outside a Pod, write nothing.

    The process is about to end with `error`, so a failure is only logged.
    """
    here = itself()
    if here.pod is None:
        return
    message = f"serve does not start: the settings can't be used, and there are no last good ones: {error}"
    try:
        with connected(target) as connection:
            own_pod_events(connection, here)(Notice(REJECTED, message, NoticeType.WARNING))
    except Exception as failure:  # noqa: BLE001 - the mistakes in the settings are what the process reports
        log.warning("the Event %s was not written: %s: %s", REJECTED, type(failure).__name__, failure)


def with_calendars(settings: Settings, target: Target | None, now: datetime) -> tuple[Settings, list[str]]:
    """Return the settings with what their calendars say `now` (aware), and a note for each that is unread.

    For such a calendar counts what the reconciler has kept of it in the cluster, as it does in a pass. The
    API server is asked only for that, and for calendars in ConfigMaps and Secrets, and not without a
    `target`.
    """
    places = settings.calendar_places()
    if not places:
        return settings, []
    # Few commands need all features.
    from reconciler.run import PARTS

    make = first("calendars")
    in_files = tuple(place for place in places if place.holder is Holder.FILE)
    connection, away = None, "" if target is not None else "this command names no cluster: add --context"
    texts = {} if make is None else dict(make(None).read(in_files))
    if target is not None and (len(in_files) < len(places) or any(text.unread for text in texts.values())):
        try:
            connection = Connection(target.kubeconfig, target.context, someone_waits=True)
        except ClusterError as error:
            away = str(error)
            texts |= {place.name: CalendarText(unread=away) for place in places if place not in in_files}
    ledger = Ledger()
    try:
        if make is not None and not away:
            texts |= make(connection).read([place for place in places if place not in in_files])
        if connection is not None and target is not None and any(text.unread for text in texts.values()):
            ledger = Cluster(connection, namespace=target.namespace).ledger()
    except ClusterError as error:
        away = f"{error}; it needs the permission {error.needs}" if error.needs else str(error)
    finally:
        if connection is not None:
            connection.close()
    texts = dict(PARTS.calendars(places, texts, ledger, now)[0])
    nothing = away or "it has kept nothing of this calendar"
    notes = [
        f"the calendar {name} can't be read: {text.unread}. What the reconciler has kept of it is not known: "
        f"{nothing}"
        if text.unread
        else f"the calendar {name} can't be read: {text.note}, as the reconciler has kept it"
        for name, text in texts.items()
        if text.unread or text.note
    ]
    return settings.with_calendars(texts), notes
