"""What new settings no longer guard, compared with those before: a mistake in valid settings is seen here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from reconciler.model import limits
from reconciler.model.coverage import Coverage, Selected, SettingsSeen
from reconciler.model.event import Kind
from reconciler.model.limits import count_of
from reconciler.model.selector import LabelSelector
from reconciler.model.values import replace
from reconciler.settings.mistakes import KeyWarning, Path, spelt
from reconciler.settings.schema import Mode, Settings

Counted = tuple[Mapping[str, str], int]
"""The labels of so many nodes."""

_MOST = 30
"""Selectors and profiles that are compared: the lock has to keep them."""

_LONGEST = 120
"""Characters of a selector. What is longer counts as the same if it begins alike."""


def selectors(section: BaseModel, path: Path = ()) -> Iterator[tuple[Path, LabelSelector]]:
    """Yield each selector of nodes in a section and below it, with its path in the file."""
    for name, field in type(section).model_fields.items():
        value, here = getattr(section, name), (*path, str(field.alias or name))
        if name == "node_selector" and isinstance(value, LabelSelector):
            yield here, value
        items = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, tuple) else ()
        )
        for key, each in ((None, value), *items):
            if isinstance(each, BaseModel):
                yield from selectors(each, here if key is None else (*here, key))


def coverage_of(settings: Settings, nodes: Iterable[Counted]) -> Coverage:
    """Return what the settings guard of these nodes."""
    nodes = tuple(nodes)
    selected = [
        Selected(
            spelt(path),
            limits.text(str(selector), _LONGEST),
            sum(count for labels, count in nodes if selector.matches(labels)),
        )
        for path, selector in selectors(settings)
        if path != ("nodeSelector",)
    ]
    for part in settings.of_features:
        if names := (its := part.profiles(settings)).names:
            profiles = Counter[str]()
            for labels, count in nodes:
                profiles.update(dict.fromkeys(its.selected(labels), count))
            selected += [Selected(f"{part.key}.profiles.{name}", "", profiles[name]) for name in names]
    # `nodeSelector` is first: what follows may be left out.
    every = Selected("nodeSelector", limits.text(str(settings.node_selector), _LONGEST))
    covered = Coverage(
        settings.mode.value,
        foreign=settings.origin.foreign,
        selected=(every, *selected)[:_MOST],
        managed=sum(count for labels, count in nodes if settings.manages(labels)),
        nodes=sum(count for _, count in nodes),
    )
    if settings.origin.foreign:
        return covered
    policies = settings.policies({})
    meant = {kind: policies[kind, ""] for kind in Kind}
    return replace(
        covered,
        drains=tuple(kind.value for kind, policy in meant.items() if policy is not None and policy.drain),
        conditions=tuple(sorted(settings.condition_types())),
        sources=tuple(to_camel(name) for name, section in settings.sources if section.enabled),
    )


def selects_none(coverage: Coverage) -> Iterator[KeyWarning]:
    """Yield that the settings manage none of the nodes."""
    if coverage.nodes and not coverage.managed:
        yield KeyWarning(
            "nodeSelector", f"selects none of the {count_of(coverage.nodes, 'node')}", "correct its labels"
        )


def losses(before: Coverage, after: Coverage) -> Iterator[KeyWarning]:
    """Yield what the settings `after` no longer guard: nodes that they leave alone, and cases that they end.

    Shares are compared, because nodes may come and go between the two.
    """
    yield from selects_none(after)
    if after.managed and 2 * after.managed * before.nodes < before.managed * after.nodes:
        message = (
            f"manages {after.managed} of {count_of(after.nodes, 'node')}; those before managed "
            f"{before.managed} of"
            f" {before.nodes}"
        )
        yield KeyWarning("nodeSelector", message, "correct its labels, if that is not meant")
    selected = {each.key: each for each in before.selected}
    for each in after.selected[1:]:
        was = selected.get(each.key)
        if was is None or not was.nodes or not after.nodes:
            continue
        if not each.nodes:
            message = f"selects none of the {count_of(after.nodes, 'node')}, and selected {was.nodes}"
            yield KeyWarning(each.key, message, "correct its labels: kubectl get nodes --show-labels")
        elif each.nodes == after.nodes and was.nodes < before.nodes:
            message = f"selects all {count_of(after.nodes, 'node')}, and selected {was.nodes}"
            yield KeyWarning(each.key, message, "correct its labels, if that is not meant")
    kept = {each.key for each in after.selected}
    for was in before.selected:
        if ".profiles." in was.key and was.nodes and was.key not in kept and len(kept) < _MOST:
            yield KeyWarning(
                was.key, f"is gone, and {count_of(was.nodes, 'node')} had it", "add it again, if not meant"
            )
    if before.foreign or after.foreign:
        # A file of maintenance-controller says nothing about events.
        return
    if before.mode == Mode.ENFORCE and after.mode != Mode.ENFORCE:
        yield KeyWarning("mode", f"is {after.mode}, and was Enforce: no drain starts", "set mode: Enforce")
    for kind in before.drains:
        if kind not in after.drains:
            message = f"is false, and was true: a {kind} drains no node any more"
            yield KeyWarning(f"events.{kind}.drain", message, "set it to true, if that is not meant")
    for condition in before.conditions:
        if condition not in after.conditions:
            message = "is gone: it drains no node any more"
            yield KeyWarning(f"conditions.{condition}", message, "add it again, if that is not meant")
    for source in before.sources:
        if source not in after.sources:
            message = "is disabled, and was enabled: what it announces is not seen"
            yield KeyWarning(f"sources.{source}", message, "enable it, if that is not meant")


def seen_now(
    seen: SettingsSeen | None, settings: Settings, nodes: Iterable[Counted], since: datetime
) -> SettingsSeen:
    """Return what is known after a pass with these settings; `since` is when they came into force (aware).

    `seen` is what the pass before knew, None if that is not known. Of several changes within the hour, each
    is compared with what was before the first one. Counts of nodes are taken again when others came into
    force, or when nodes have become many more or many fewer: so the lock keeps saying the same.
    """
    now = coverage_of(settings, nodes)
    if seen is None:
        return SettingsSeen(now)
    if seen.coverage.means() == now.means():
        moved = not seen.coverage.nodes <= 2 * now.nodes <= 4 * seen.coverage.nodes
        return SettingsSeen(now, seen.before, seen.since, seen.lost) if moved else seen
    goes_on = seen.before is not None and bool(seen.shown(since))
    before = seen.before if goes_on and seen.before is not None else seen.coverage
    began = seen.since if goes_on else since
    lost = tuple(map(str, losses(before, now)))
    return SettingsSeen(now, before, began, lost) if lost else SettingsSeen(now)
