"""stagger: whether enough time has passed since another node passed, by Leases."""

from __future__ import annotations

from datetime import timedelta

from reconciler.features.workflows.input import CheckInput
from reconciler.features.workflows.plugins import check_type
from reconciler.model.check_reads import LeaseRef, LeaseTake, Needs
from reconciler.model.moments import to_text
from reconciler.profiles.plugins import CheckResult, failed, passed, unknown
from reconciler.settings.sections.check_types import StaggerCheck

_AFTER = timedelta(microseconds=1)


def _refs(config: StaggerCheck) -> tuple[LeaseRef, ...]:
    return tuple(LeaseRef(*place) for place in config.leases)


def _needs(config: StaggerCheck) -> Needs:
    return Needs(leases=frozenset(_refs(config)))


def _free(config: StaggerCheck, given: CheckInput) -> LeaseRef | None:
    """Return the first Lease that a node may take: it does not exist, was never taken, or has expired."""
    for ref in _refs(config):
        if ref not in given.read.leases:
            continue
        seen = given.read.leases[ref]
        if seen is None or seen.until is None or seen.until < given.now:
            return ref
    return None


def _take(config: StaggerCheck, given: CheckInput) -> LeaseTake | None:
    ref = _free(config, given)
    if ref is None:
        return None
    return LeaseTake(ref, given.node.name, given.now, config.duration, given.read.leases[ref])


@check_type("stagger", StaggerCheck, _needs, _take)
def stagger(config: StaggerCheck, given: CheckInput) -> CheckResult:
    """Pass when a Lease is free. The node takes it only if the transition really happens."""
    free = _free(config, given)
    if free is not None:
        return passed(f"the Lease {free} is free")
    unread = [
        f"{ref}: {given.read.unread_leases.get(ref, 'it was not read')}"
        for ref in _refs(config)
        if ref not in given.read.leases
    ]
    held = [(seen.until, ref, seen) for ref in _refs(config) if (seen := given.read.leases.get(ref))]
    taken = [one for one in held if one[0] is not None]
    first = min((until for until, _, _ in taken if until is not None), default=None)
    until = first + _AFTER if first is not None else None
    if unread:
        return unknown(f"a Lease can't be read: {unread[0]}", until)
    _, ref, seen = min(taken, key=lambda one: (one[0] is None, one[0], one[1]))
    shown = f", until {to_text(first)}" if first is not None else ""
    return failed(f"node {seen.holder or 'unknown'} has taken the Lease {ref}{shown}", until)
