"""maxMaintenance: whether fewer nodes than a limit are in maintenance."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial

from reconciler.features.workflows.input import CheckInput, Fleet, Member
from reconciler.features.workflows.plugins import check_type
from reconciler.model.check_reads import Needs
from reconciler.model.moments import shifted
from reconciler.profiles.plugins import CheckResult, failed, passed
from reconciler.settings.sections.check_types import MaxMaintenanceCheck

_NAMED_AT_MOST = 3


def _needs(config: MaxMaintenanceCheck) -> Needs:
    return Needs(labels=frozenset(config.labels))


@check_type("maxMaintenance", MaxMaintenanceCheck, _needs)
def max_maintenance(config: MaxMaintenanceCheck, given: CheckInput) -> CheckResult:
    """Pass while fewer than `max` nodes are in maintenance, of those that count.

    A node counts whatever profile it is in maintenance for. With `profile` it has to have that profile, with
    `groupBy` the labels of this node. With `skipAfter` it stops counting that long after its last transition.
    """
    group = {key: value for key in config.labels if (value := given.node.labels.get(key))}
    key = ("maxMaintenance", config.max, config.profile, config.skip_after, given.now, *group.items())
    return given.members.once(key, partial(_answer, config, group, given))


def _answer(config: MaxMaintenanceCheck, group: Mapping[str, str], given: CheckInput) -> CheckResult:
    """Return the answer, which is the same for all nodes of a group."""
    busy = given.members.once("inMaintenance", partial(_in_maintenance, given.members))
    counted = {
        member.node.name: ends
        for member in busy
        if _belongs(member, config, group) and ((ends := _ends(member, config)) is None or given.now < ends)
    }
    scope = f" with {', '.join(f'{key}={value}' for key, value in group.items())}" if group else ""
    if config.profile:
        scope += f" with the profile {config.profile}"
    names = f" ({_named(sorted(counted))})" if counted else ""
    said = f"nodes{scope} in maintenance: {len(counted)}{names}, the limit is {config.max}"
    if len(counted) < config.max:
        return passed(said)
    # As many have to stop counting as there are too many.
    stops = sorted(ends for ends in counted.values() if ends is not None)
    many = len(counted) - config.max
    return failed(said, stops[many] if config.max and many < len(stops) else None)


def _in_maintenance(members: Fleet) -> tuple[Member, ...]:
    return tuple(member for member in members if member.in_maintenance)


def _belongs(member: Member, config: MaxMaintenanceCheck, group: Mapping[str, str]) -> bool:
    if config.profile and config.profile not in member.profiles:
        return False
    return all(member.node.labels.get(key) == value for key, value in group.items())


def _ends(member: Member, config: MaxMaintenanceCheck) -> datetime | None:
    """Return when the node stops counting (UTC), None if it never does, or that is not known."""
    profiles = member.data.profiles
    chosen = [profiles[config.profile]] if config.profile in profiles else []
    moments = [one.transition for one in (chosen if config.profile else profiles.values())]
    if not config.skip_after or not moments:
        return None
    return shifted(max(moments), config.skip_after)


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED_AT_MOST} more" if len(names) > _NAMED_AT_MOST else ""
    return f"{', '.join(names[:_NAMED_AT_MOST])}{more}"
