"""Warnings about valid settings that probably do something else than their author means."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from reconciler.calendar.occurrences import HORIZON
from reconciler.calendar.values import Limit, format_duration, is_fixed
from reconciler.calendar.windows import Calendar, NotAllowed, Window
from reconciler.calendar.zone_names import meant_by
from reconciler.model.event import Kind
from reconciler.settings.mistakes import KeyWarning, Path, spelt
from reconciler.settings.policies import DEFAULTS, LOST, OutsideWindow
from reconciler.settings.schema import CONDITIONS, Settings, conditions_in

_FEW_NODES = 5
"""A percentage that gives one place to groups of so many nodes drains them one by one."""

_UNDATED = (Kind.REBALANCE, Kind.UNKNOWN)
"""Kinds without a date, and so without a deadline."""


def warnings(settings: Settings, now: datetime) -> tuple[KeyWarning, ...]:
    """Return what a person should check in the settings, given that it is `now` (aware).

    Only what the file says is warned of, not the defaults.
    """
    found = (
        *_calendar(settings, now),
        *_budget(settings),
        *_events(settings),
        *_conditions(settings),
        *_zones(settings),
    )
    of_features = [each for part in settings.of_features for each in part.warnings(settings, now)]
    return (*found, *_drain(settings), *_sources(settings), *of_features)


def _named(kinds: Iterator[Kind]) -> str:
    return ", ".join(dict.fromkeys(kind.value for kind in kinds))


def _calendar(settings: Settings, now: datetime) -> Iterator[KeyWarning]:
    calendar = settings.calendar
    for index, window in enumerate(calendar.windows):
        key = _key("windows", index, window.name, settings, len(settings.windows))
        if window.unread:
            continue  # a calendar that is not read here
        if not _opens((window,), (), now):
            yield KeyWarning(
                key, f"never opens in the next {HORIZON.days} days", "change its times, or remove it"
            )
        elif not _opens((window,), calendar.not_allowed, now):
            message = f"never opens in the next {HORIZON.days} days, because notAllowed covers all of it"
            yield KeyWarning(key, message, "change its times, or those of notAllowed")
    at_deadline = _named(
        kind
        for _, kind, policy in settings.draining()
        if policy.outside_window is not OutsideWindow.NEVER and kind is not Kind.UNKNOWN
    )
    for index, freeze in enumerate(calendar.not_allowed):
        key = _key("notAllowed", index, freeze.name, settings, len(settings.not_allowed))
        if next(freeze.times.runs(now), None) is None:
            yield KeyWarning(key, "is over and never comes again", "remove it, or change its dates")
        elif not freeze.absolute and at_deadline:
            message = f"a deadline wins over it: nodes are drained all the same for {at_deadline}"
            change = "set absolute: true if no drain may start then, or outsideWindow: Never for some events"
            yield KeyWarning(key, message, change)


def _key(key: str, index: int, name: str, settings: Settings, written: int) -> str:
    """Return the key of a window or a freeze; those of calendars come after those that are `written`."""
    if index < written:
        return f"{key}[{index}] ({name})"
    place = next(place for place in settings.calendar_places() if place.name == name)
    return f"{spelt(place.key_path[:2])} ({name})"


def _opens(windows: tuple[Window, ...], freezes: tuple[NotAllowed, ...], now: datetime) -> bool:
    return bool(Calendar(windows, freezes).openings(now, None, count=1))


def _budget(settings: Settings) -> Iterator[KeyWarning]:
    budget = settings.budget
    groups = (
        ("max_unavailable", "cluster", budget.max_unavailable),
        ("per_zone", "zone", budget.per_zone),
        ("per_pool", "pool", budget.per_pool),
    )
    for field, group, limit in groups:
        if limit is None or field not in budget.model_fields_set:
            continue
        key = f"budget.{to_camel(field)}"
        if limit.amount == 0:
            exempt = f", except for {', '.join(budget.exempt)} once they are due" if budget.exempt else ""
            yield KeyWarning(
                key, f"is {limit}: no drain starts before the platform{exempt}", "write 1 or more"
            )
        elif (wave := _one_by_one(group, limit)) and (late := _dated(settings)):
            message = (
                f"is {limit}: {wave} drained one after another, and of several that are announced together"
                f" only the first is sure to be drained in time ({late})"
            )
            yield KeyWarning(key, message, "allow more nodes, or increase leadTime")
    notice = [policy.lead_time for _, _, policy in settings.draining() if policy.lead_time]
    if notice and budget.spacing > min(notice):
        message = (
            f"is {format_duration(budget.spacing)}, longer than the shortest leadTime"
            f" ({format_duration(min(notice))}): of nodes that are announced together only the first is"
            " drained in time"
        )
        yield KeyWarning("budget.spacing", message, "shorten it, or increase leadTime")
    reserve, most = budget.reserve, budget.max_unavailable
    if reserve.amount and reserve.percent == most.percent and reserve.amount >= most.amount:
        message = f"is {reserve}, and budget.maxUnavailable is {most}: no planned drain ever starts"
        yield KeyWarning("budget.reserve", message, "keep fewer places than there are")
    if "exempt" in budget.model_fields_set:
        yield from _exempt(settings)


def _one_by_one(group: str, limit: Limit) -> str:
    """Return which nodes have only one place, empty if there is no such group."""
    if not limit.percent:
        return f"the nodes of a {group} are" if limit.amount == 1 else ""
    few = 100 // limit.amount
    # A whole cluster of so few nodes has no other choice.
    small = few >= _FEW_NODES and group != "cluster"
    return f"the nodes of a {group} of up to {few} are" if small else ""


def _dated(settings: Settings) -> str:
    """Return the kinds whose notice is short, with their lead times."""
    found = {
        kind.value: format_duration(policy.lead_time)
        for _, kind, policy in settings.draining()
        if policy.lead_time and policy.lead_time <= settings.drain.timeout
    }
    return ", ".join(f"{kind}.leadTime is {lead}" for kind, lead in found.items())


def _exempt(settings: Settings) -> Iterator[KeyWarning]:
    exempt = settings.budget.exempt
    drained = {kind for _, kind, _ in settings.draining()}
    for kind in LOST:
        if kind in drained and kind not in exempt:
            message = f"does not name {kind}: its node waits for a place, and is lost with its pods meanwhile"
            yield KeyWarning("budget.exempt", message, f"add {kind}")
    for kind in exempt:
        if kind not in drained:
            message = f"names {kind}, which is never drained"
            yield KeyWarning("budget.exempt", message, f"set events.{kind}.drain: true, or remove it here")


def _events(settings: Settings) -> Iterator[KeyWarning]:
    for key, kind, policy in settings.draining():
        never = policy.outside_window is OutsideWindow.NEVER
        if never and kind in LOST and settings.windows:
            message = "is Never: outside a window the node is lost with its pods"
            yield KeyWarning(f"{key}.{kind}.outsideWindow", message, "write AtDeadline or Immediately")
        at_deadline = policy.outside_window is OutsideWindow.AT_DEADLINE
        if at_deadline and not policy.lead_time and settings.calendar.windows and kind not in _UNDATED:
            message = (
                "is 0s: outside a window the drain starts with the maintenance itself, which is too late"
            )
            change = "write 15m or more, or outsideWindow: Immediately"
            yield KeyWarning(f"{key}.{kind}.leadTime", message, change)


def _conditions(settings: Settings) -> Iterator[KeyWarning]:
    """Ask about conditions that are True on healthy nodes by their names, such as `KernelReady`."""
    tops = [(CONDITIONS, conditions_in(settings))]
    tops += [
        (f"overrides[{index}].{CONDITIONS}", conditions_in(one))
        for index, one in enumerate(settings.overrides)
    ]
    named = {name for _, given in tops for name, meaning in given.items() if meaning.status is not None}
    for path, given in tops:
        for name, meaning in given.items():
            if name.casefold().endswith("ready") and name not in named and meaning.drain is not False:
                message = f"is {name} True on healthy nodes, as its name says? Then they are drained"
                yield KeyWarning(
                    f"{path}.{name}", message, 'write status: "False", or status: "True" if True is the fault'
                )


def _zones(section: BaseModel, path: Path = ()) -> Iterator[KeyWarning]:
    """Warn of zones without summer time whose names people use of places that have it."""
    for name, field in type(section).model_fields.items():
        value, here = getattr(section, name), (*path, str(field.alias or name))
        if isinstance(value, ZoneInfo) and is_fixed(value):
            offset = datetime(2026, 7, 1, tzinfo=value).utcoffset() or timedelta()
            hours = int(offset / timedelta(hours=1))
            message = f"{value.key} is UTC{hours:+03}:00 all year, without summer time"
            city = next(iter(meant_by(value.key)), "America/New_York")
            yield KeyWarning(spelt(here), message, f"write the zone of a city, like {city}")
        below = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, tuple) else ()
        )
        for key, each in ((None, value), *below):
            if isinstance(each, BaseModel):
                yield from _zones(each, here if key is None else (*here, key))


def _drain(settings: Settings) -> Iterator[KeyWarning]:
    drain = settings.drain
    written = "timeout" in drain.model_fields_set
    short = {
        f"{key}.{kind}.leadTime ({format_duration(policy.lead_time)})"
        for key, kind, policy in settings.draining()
        if timedelta() < policy.lead_time < drain.timeout
        and (written or policy.lead_time != DEFAULTS[kind].lead_time)
    }
    timeout = format_duration(drain.timeout)
    if short:
        message = (
            f"is {timeout}, longer than {', '.join(sorted(short))}: a drain that starts"
            " at the deadline may still run when the platform starts"
        )
        yield KeyWarning("drain.timeout", message, "increase leadTime, or shorten drain.timeout")
    after = drain.escalation.warn_after if drain.escalation is not None else None
    if after is not None and after >= drain.timeout:
        message = f"is not shorter than drain.timeout ({timeout}): nothing is warned of"
        yield KeyWarning("drain.escalation.warnAfter", message, "shorten it")
    limit = settings.budget.max_unavailable
    if not limit.percent and drain.max_concurrent_nodes < limit.amount:
        message = (
            f"is {drain.max_concurrent_nodes}, less than budget.maxUnavailable ({limit}): nodes may stand"
            " cordoned and wait for their drain"
        )
        yield KeyWarning(
            "drain.maxConcurrentNodes", message, "increase it, or decrease budget.maxUnavailable"
        )


def _sources(settings: Settings) -> Iterator[KeyWarning]:
    enabled = any(section.enabled for _, section in settings.sources)
    enabled = enabled or any(section.sees(settings) for section in settings.of_features)
    if not enabled and not settings.origin.foreign:
        yield KeyWarning("sources", "none is enabled: no maintenance is ever seen", "enable one of them")
