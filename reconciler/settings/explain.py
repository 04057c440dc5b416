"""Explains the settings: what happens to which event on which node, and when drains may start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypedDict

from reconciler.calendar.occurrences import Cron, Times
from reconciler.calendar.values import Limit, format_duration, format_local, in_zone, parse_moment, to_utc
from reconciler.calendar.windows import Calendar, NotAllowed
from reconciler.model.event import Kind
from reconciler.model.limits import count_of
from reconciler.model.moments import to_text
from reconciler.model.selector import Operator
from reconciler.settings.fields import for_nodes
from reconciler.settings.grants import grants_as_words, grants_of
from reconciler.settings.policies import EventPolicy, OutsideWindow, Start, Treatment, UserInitiated
from reconciler.settings.schema import Mode, PolicyWords, Settings

_MODES = {
    Mode.OBSERVE: "Observe: report only, change no node",
    Mode.ENFORCE: "Enforce: cordon, drain and uncordon nodes",
    Mode.FINISH: "Finish: start nothing new, finish the drains that have started, and uncordon their nodes",
}


def explain_settings(settings: Settings, name: str = "") -> str:
    """Return what the settings do, line by line, for `reconciler check-config`."""
    return "\n".join(_lines(settings, name)) + "\n"


def _lines(settings: Settings, name: str) -> Iterator[str]:
    if name:
        yield f"{name} is valid."
        yield ""
    yield f"Mode {_MODES[settings.mode]}."
    nodes = "All nodes" if settings.node_selector.selects_all else f"Nodes with {settings.node_selector}"
    yield f"{nodes} are managed, except those with the label {settings.keys.names.ignore}=true."
    yield f"Times are in {settings.time_zone.key}."
    if settings.passes.every is not None:
        yield f"A pass runs at least every {format_duration(settings.passes.every)}, and after each change."
    elif settings.passes.cron is not None:
        yield f"A pass runs at the times of the cron schedule {settings.passes.cron}, and after each change."
    foreign = [
        part for part in settings.of_features if part.form is not None and any(part.explained(settings))
    ]
    for part in foreign:
        yield from ("", *part.explained(settings))
    if foreign and (grants := grants_of(settings)).any:
        yield ""
        yield "Permissions beyond k8s/base (--permissions prints them as YAML)"
        yield from grants_as_words(grants)
    if settings.origin.foreign:
        return
    yield ""
    yield "Events"
    plain = list(_events(settings, {}))
    yield from plain
    for index, override in enumerate(settings.overrides):
        selector = override.node_selector
        nodes = "all nodes" if selector.selects_all else f"nodes with {selector}"
        yield ""
        yield f"Different on {nodes} (overrides[{index}])"
        example: dict[str, str] = {}
        for requirement in selector.requirements:
            if requirement.operator == Operator.IN:
                example[requirement.key] = requirement.values[0]
            elif requirement.operator == Operator.EXISTS:
                example.setdefault(requirement.key, "")
        if not selector.matches(example):
            # No single set of labels stands for these nodes, so their policies are not known here.
            yield "  as in the file; the selector matches different nodes, so there is no single answer"
            continue
        changed = [line for line in _events(settings, example) if line not in plain]
        yield from changed or ["  nothing"]
    yield ""
    yield "Windows"
    calendar = settings.calendar
    for window in calendar.windows:
        yield f"  {_named(window.name, window.times)}{for_nodes(window.selector)}."
    if not calendar.windows:
        but = ", but those that are not allowed" if calendar.not_allowed else ""
        yield f"  No windows: drains may start at any time{but}."
    elif not any(window.selector.selects_all for window in calendar.windows):
        yield "  On nodes without a window: at any time."
    for freeze in calendar.not_allowed:
        why = f", {freeze.reason}" if freeze.reason else ""
        beaten = "even at a deadline" if freeze.absolute else "except at a deadline"
        named = _named(freeze.name, freeze.times)
        yield f"  Not allowed: {named}{why}{for_nodes(freeze.selector)}; {beaten}."
    yield ""
    yield "Draining"
    drain = settings.drain
    yield (
        f"  At most {count_of(drain.max_concurrent_nodes, 'node')} at once, "
        f"{format_duration(drain.timeout)} for each."
    )
    if settings.adopt:
        yield f"  Cordons of {', '.join(settings.adopt)} are adopted."
    yield ""
    yield "Budget"
    budget = settings.budget
    yield f"  At most {_limit(budget.max_unavailable)} out of service at once, for any reason."
    for limit, place in ((budget.per_zone, "zone"), (budget.per_pool, "node pool")):
        if limit is not None:
            yield f"  In each {place}, at most {_limit(limit)}."
    if budget.spacing > timedelta():
        yield f"  At least {format_duration(budget.spacing)} between the starts of two drains."
    if budget.exempt:
        yield f"  Nodes with {', '.join(budget.exempt)} never wait for a place, but count."
    yield "  A node whose maintenance the platform has started waits for no place, but counts."
    held = [f"NotReady for more than {format_duration(budget.ignore.not_ready_for)}"]
    if budget.ignore.quarantined:
        held.append("quarantined")
    yield f"  Nodes {' or '.join(held)} hold no place."
    for part in settings.of_features:
        if part not in foreign and (lines := list(part.explained(settings))):
            yield from ("", *lines)


def _events(settings: Settings, labels: Mapping[str, str]) -> Iterator[str]:
    calendar = settings.calendar
    policies = settings.policies(labels)

    def of_features(policy: EventPolicy) -> list[PolicyWords]:
        return [key.words(policy, settings) for key in settings.policy_keys]

    for kind in Kind:
        policy = policies.of_kind(kind)
        more = of_features(policy)
        words = _policy(policy, more, calendar, unread=kind is Kind.UNKNOWN)
        yield f"  {kind}: {words}{_start(policy, more)}"
    if policies.user_initiated is UserInitiated.REPORT:
        yield "  Events that a user of the subscription starts: reported only."
    else:
        yield "  Events that a user of the subscription starts: treated like those of the platform."
    for condition in sorted(policies.conditions):
        meant = policies.of_condition(condition)
        if meant is not None:
            words = _policy(meant, of_features(meant), calendar, condition=True)
            yield f"  Condition {condition}: {words}"


def _policy(
    policy: EventPolicy,
    of_features: Sequence[PolicyWords],
    calendar: Calendar,
    *,
    condition: bool = False,
    unread: bool = False,
) -> str:
    if not policy.drain:
        return "reported, with the text that cannot be read." if unread else "reported only, no drain."
    parts = ["drained"]
    if condition:
        parts = [
            f"drained once it has been {policy.status} for {format_duration(policy.for_)}"
            if policy.for_
            else f"drained while it is {policy.status}"
        ]
    elif policy.min_duration:
        parts.append(
            f"if it lasts {format_duration(policy.min_duration)} or longer, or its duration is unknown"
        )
    parts.append(_when(policy, calendar, condition=condition))
    parts += [words.waits for words in of_features if words.waits]
    empty_dir = "evicted" if policy.empty_dir is Treatment.EVICT else "kept"
    unmanaged = "evicted" if policy.unmanaged_pods is Treatment.EVICT else "kept"
    after = "".join(f" {words.then}" for words in of_features if words.then)
    return f"{', '.join(parts)}; pods with an emptyDir are {empty_dir}, unmanaged pods {unmanaged}.{after}"


def _start(policy: EventPolicy, of_features: Sequence[PolicyWords]) -> str:
    """Return which way a drain goes that may start early because we can end its case, empty for any other."""
    ends = [words.ends for words in of_features if words.ends]
    if not policy.drain or not ends:
        return ""
    what = f"be {' or '.join(ends)}"
    if policy.start is None:
        way = f"It starts early where it can {what}, else late like other events."
        way = " ".join((way, *(words.early for words in of_features if words.early)))
    elif policy.start is Start.EARLY:
        way = f"It starts early, also where it can't {what}: then the node is empty until the platform acts."
    else:
        way = "It starts late, because start is Late."
    return " ".join(("", way, *(words.but for words in of_features if words.but)))


def _when(policy: EventPolicy, calendar: Calendar, *, condition: bool) -> str:
    """Return when a drain starts. A condition has no deadline, so it always waits for a window."""
    if not calendar.windows and not calendar.not_allowed:
        return "at any time, because there are no windows"
    if policy.outside_window is OutsideWindow.IMMEDIATELY:
        return "at once, also outside windows" if calendar.windows else "at once, also where not allowed"
    if policy.outside_window is OutsideWindow.NEVER or condition:
        return "only inside a window" if calendar.windows else "at any time but those that are not allowed"
    lead = f"{format_duration(policy.lead_time)} before notBefore" if policy.lead_time else "at notBefore"
    if not calendar.windows:
        return f"at any time but those that are not allowed, and at the deadline then, {lead}"
    return f"inside a window that opens before the deadline, else at the deadline, {lead}"


def _named(name: str, times: Times) -> str:
    """Return a rule with its times, those of a cron schedule by the days of the week as well."""
    words, days = str(times), times.days if isinstance(times, Cron) else ""
    return f"{name if name == words else f'{name}: {words}'}{f' ({days})' if days else ''}"


def _limit(limit: Limit) -> str:
    if limit.percent:
        return f"{limit} of the nodes"
    return count_of(limit.amount, "node")


class OpeningWords(TypedDict):
    """An opening, as JSON: RFC 3339 in UTC. `end` is null if it is more than 400 days away."""

    start: str
    end: str | None
    window: str
    nodes: str


class IntervalWords(TypedDict):
    """When a window or a freeze applies, as JSON. The use is `windows` or `notAllowed`."""

    start: str
    end: str | None
    use: str
    name: str
    nodes: str
    reason: str
    absolute: bool
    summary: str


class WindowsWords(TypedDict):
    """The output of `reconciler windows --output json`. Keys are added, never removed."""

    at: str
    open: bool
    because: str
    window: str | None
    notAllowed: str | None
    absolute: bool
    changesAt: str | None
    openings: list[OpeningWords]
    intervals: list[IntervalWords]


FORTNIGHT = timedelta(days=14)
"""How far ahead `reconciler windows` shows each window and freeze."""


def parse_at(text: str, settings: Settings) -> datetime:
    """Return the moment of `--at` in UTC. Without an offset, it is in the time zone of the settings.

    Raises ValueError for a text that is not a moment.
    """
    return to_utc(parse_moment(text), settings.time_zone)


def windows_as_data(
    settings: Settings, now: datetime, labels: Mapping[str, str] | None = None, *, count: int = 3
) -> WindowsWords:
    """Return whether a drain may start `now` on a node with these labels, and the next `count` openings.

    With `labels=None` the answer is for all nodes: `open` means open for at least one window, and each
    opening has the selector of its nodes (empty: all nodes). `intervals` has the windows and freezes of the
    next fortnight one by one.
    """
    openness = settings.calendar.at(now, labels)
    openings = settings.calendar.openings(now, labels, count=count)
    intervals: list[IntervalWords] = []
    for interval in settings.calendar.intervals(now, labels, now + FORTNIGHT):
        freeze = interval.rule if isinstance(interval.rule, NotAllowed) else None
        intervals.append(
            {
                "start": to_text(interval.start),
                "end": to_text(interval.end) if interval.end else None,
                "use": "windows" if freeze is None else "notAllowed",
                "name": interval.rule.name,
                "nodes": str(interval.rule.selector),
                "reason": freeze.reason if freeze else "",
                "absolute": freeze.absolute if freeze else False,
                "summary": interval.said,
            }
        )
    return {
        "at": to_text(now),
        "open": openness.open,
        "because": openness.because,
        "window": openness.window,
        "notAllowed": openness.not_allowed,
        "absolute": openness.absolute,
        "changesAt": to_text(openness.changes_at) if openness.changes_at else None,
        "openings": [
            {
                "start": to_text(opening.start),
                "end": to_text(opening.end) if opening.end else None,
                "window": opening.window,
                "nodes": str(opening.selector),
            }
            for opening in openings
        ],
        "intervals": intervals,
    }


def windows_as_text(
    settings: Settings, now: datetime, labels: Mapping[str, str] | None = None, *, count: int = 3
) -> str:
    """Return the same as text, with times in the time zone of the settings."""
    zone = settings.time_zone
    openness = settings.calendar.at(now, labels)
    lines = [
        f"{format_local(now, zone)}: {'open' if openness.open else 'closed'}",
        f"  {in_zone(openness.because, zone)}",
    ]
    openings = settings.calendar.openings(now, labels, count=count)
    lines.append("Openings" if openings else "No opening in the next 400 days")
    for opening in openings:
        end = f"to {to_text(opening.end)}" if opening.end else "without an end"
        nodes = "" if opening.selector.selects_all else f" (nodes {opening.selector})"
        lines.append(in_zone(f"  {to_text(opening.start)} {end}: {opening.window}{nodes}", zone))
    return "\n".join(lines) + "\n"
