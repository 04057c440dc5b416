"""Who makes passes in this cluster, and whether they still come."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from reconciler.model import limits
from reconciler.model.coverage import SettingsSeen
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.values import decoded, encoded, replace

PASSES = f"{DEFAULT_PREFIX}/passes"
"""The annotation of the lock in which its holder says which passes it has made. It is the same for all
prefixes, because who reads it may not know the settings.
"""

OBSERVE = "Observe"
"""The mode in which nobody takes the lock."""

OVERDUE_AFTER = 3
"""How many times the interval of the passes may go by without one."""

_SAID_WITHIN = timedelta(seconds=4)
"""How much older than the last pass what the lock says may be: it is renewed every 2 seconds, and moments are
whole seconds.
"""

LOOK = "kubectl get pods,cronjobs -A -l app.kubernetes.io/name=node-maintenance-reconciler"
"""The command that shows where a reconciler should run."""

LOG = "kubectl -n NAMESPACE logs -l app.kubernetes.io/name=node-maintenance-reconciler --tail 100"
"""The command that shows what the reconciler has logged last."""

FIND = "kubectl get leases -A --field-selector metadata.name=reconciler-lock"
"""The command that shows the locks of all reconcilers."""

_SHORTEST = timedelta(seconds=1)
"""The shortest interval: moments are kept in whole seconds."""

_AHEAD = timedelta(seconds=30)
"""A last pass that is further in the future was written by a clock that nobody trusts."""


class Running(StrEnum):
    """Whether passes still come. Documents show the values."""

    RUNNING = "running"
    OVERDUE = "overdue"
    """Three times the usual interval has gone by since the last pass: nobody acts on any node."""

    NEVER = "never"
    """Nobody has ever held the lock."""

    UNKNOWN = "unknown"


class Reconciler(Struct, frozen=True):
    """Who acts on the nodes of a cluster, as its lock says.

    `holder` is the identity of the process that has the lock, empty if none has it. `last_pass` is when the
    last pass ended (UTC), and `interval` how far the passes were apart, None if that is not known. `mode` is
    that of the last pass. `cluster` and `context` are names of the kubeconfig, or of the API server.
    `lock` is the namespace of the lock, and `since` when the lock was made (UTC). `others` are the locks of
    other reconcilers that act on the same nodes, by their namespaces, and `yields_to` is the one that is
    older, so that this one starts no drain; empty if there is none. `seen` is what the settings of the last
    pass guard, and `lost` what they do not that those before did, while that is shown. `rivals` are the
    reconcilers with other locks, as they were read last. `because` says why nothing better
    is known, and `needs` which permission is missing for it.
    """

    running: Running = Running.UNKNOWN
    holder: str = ""
    last_pass: datetime | None = None
    interval: timedelta | None = None
    mode: str = ""
    cluster: str = ""
    context: str = ""
    because: str = "the lock was not read"
    needs: str = ""
    lock: str = ""
    since: datetime | None = None
    others: tuple[str, ...] = ()
    yields_to: str = ""
    seen: SettingsSeen | None = None
    lost: tuple[str, ...] = ()
    rivals: tuple[Reconciler, ...] = ()

    @property
    def selects(self) -> str | None:
        """The `nodeSelector` of the last pass, empty if it selects all nodes; None before one has ended."""
        if self.seen is None:
            return None
        return next((each.by for each in self.seen.coverage.selected if each.key == "nodeSelector"), "")

    @property
    def runs(self) -> bool | None:
        """Whether passes come, None if that is not known."""
        return None if self.running is Running.UNKNOWN else self.running is Running.RUNNING

    @property
    def acts(self) -> bool:
        """Whether somebody may act on nodes. Only a reconciler that is known to be overdue does not."""
        return self.running is not Running.OVERDUE

    @property
    def beside(self) -> str:
        """Where the other locks are, and which reconciler starts no drain; empty without others."""
        if not self.others:
            return ""
        starts = "this one starts no drain" if self.yields_to else "the younger one starts no drain"
        return f"the other lock is in namespace {', '.join(self.others)}; {starts}"


def running(reconcilers: Iterable[Reconciler]) -> list[Reconciler]:
    """Return those that make passes, by the names of their namespaces."""
    return sorted(
        (each for each in reconcilers if each.running is Running.RUNNING), key=lambda each: each.lock
    )


def beside(own: Reconciler, others: Iterable[Reconciler]) -> Reconciler:
    """Return who acts on the nodes, with the other reconcilers that do so with another lock.

    One that makes no passes any more, such as an uninstalled one, is none. Of two, the one with the older
    lock goes on; locks of the same second go by their names.
    """
    acting = running(others)
    older = [other for other in acting if own.since and other.since and _age(other) < _age(own)]
    first = min(older, key=_age, default=None)
    return replace(
        own, others=tuple(other.lock for other in acting), yields_to=first.lock if first is not None else ""
    )


def _age(reconciler: Reconciler) -> tuple[datetime | None, str]:
    return reconciler.since, reconciler.lock


def pod_of(holder: str) -> str:
    """Return the Pod of the process that has this identity, or the host of one outside of a cluster."""
    return holder.partition("/")[0]


class Passes(Struct, frozen=True):
    """What the holder of the lock says about its passes.

    `last` is when the last one ended, and `began` when the last sweep began, None after a pass of `serve`
    (both UTC). `apart` are the last two distances between the begins of sweeps, or the longest time between
    two passes of `serve`. `mode` is the mode of the settings, and `version` that of the program. `seen` is
    what the settings guard.
    """

    last: datetime | None = None
    began: datetime | None = None
    apart: tuple[timedelta, ...] = ()
    mode: str = ""
    version: str = ""
    seen: SettingsSeen | None = None

    @property
    def interval(self) -> timedelta | None:
        """How far the passes are apart, None if that is not known.

        It is the longer one of two distances: a person may run a sweep between two of a CronJob.
        """
        # What is out of all bounds was read as None.
        return max(filter(None, self.apart), default=None)

    def of_sweep(self, now: datetime, mode: str, version: str) -> Passes:
        """Return what a sweep says that begins `now` (aware), after what the holder before it has said."""
        apart = self.apart[-1:] if self.began is not None else ()
        if self.began is not None and now > self.began:
            apart = (*apart, max(now - self.began, _SHORTEST))
        return Passes(self.last, now, apart, mode, version, self.seen)

    def of_serve(self, every: timedelta, mode: str, version: str) -> Passes:
        """Return what `serve` says before its first pass; `every` is the longest time between two."""
        return Passes(self.last, None, (max(every, _SHORTEST),), mode, version, self.seen)

    def passed(
        self, now: datetime, mode: str, seen: SettingsSeen | None = None, every: timedelta | None = None
    ) -> Passes:
        """Return the same after a pass that has ended `now` (aware); `seen` is what its settings guard.

        `every` is the longest time from this pass of `serve` to the next, None for a sweep.
        """
        apart = self.apart if every is None else (max(every, _SHORTEST),)
        return replace(self, last=now, apart=apart, mode=mode, seen=seen)

    def state(self, now: datetime) -> tuple[Running, str]:
        """Return whether passes still come `now` (aware), and why that is not known."""
        at = self.last or self.began
        if at is None:
            return Running.UNKNOWN, "no pass has ended yet"
        if at > now + _AHEAD:
            return Running.UNKNOWN, "its last pass has a time in the future"
        if self.interval is None:
            return Running.UNKNOWN, "only one sweep has run, so how often passes come is not known"
        overdue = now - at > OVERDUE_AFTER * self.interval + _SAID_WITHIN
        return (Running.OVERDUE if overdue else Running.RUNNING), ""


def passes_text(passes: Passes) -> str:
    """Return the text of the annotation."""
    return json.dumps(encoded(passes))


def passes_of(text: str | None) -> Passes:
    """Return what the annotation says; nothing if there is none, or if it can't be read."""
    if text is None:
        return Passes()
    try:
        return decoded(Passes, limits.loads(text))
    except ValueError:
        return Passes()
