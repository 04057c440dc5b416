"""What the settings mean for the nodes that a cluster has now: whom each selector and condition is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pydantic import BaseModel

from reconciler.model.node import Node
from reconciler.model.selector import LabelSelector
from reconciler.settings.mistakes import Path, Warned, spelt
from reconciler.settings.policies import is_on_most
from reconciler.settings.schema import Settings


def nodes_in_words(settings: Settings, nodes: Sequence[Node]) -> Iterator[str]:
    """Yield how many nodes are managed, and on how many of them each condition of the settings is so now."""
    managed = [node for node in nodes if settings.manages(node.labels)]
    yield f"  {len(managed)} of {len(nodes)} nodes are managed."
    for condition in sorted(settings.condition_types()):
        drained, counts = _with_condition(settings, condition, managed)
        absent = len(drained) - counts.total()
        each = [f"{status} on {count}" for status, count in sorted(counts.items())]
        each.append(f"absent on {absent if counts else 'all'}")
        yield f"  Condition {condition}: {', '.join(each)} of {len(drained)} nodes that it may drain."
    for path, selector in _selectors(settings):
        if not selector.selects_all:
            yield f"  {spelt(path)} selects {_count(selector, nodes)} of {len(nodes)} nodes."


def nodes_to_question(
    settings: Settings, nodes: Sequence[Node], installed: Settings | None
) -> Iterator[Warned]:
    """Yield what is about none or nearly all of the nodes, and probably not meant.

    `installed` are the settings that the cluster has now, None if they are not known.
    """
    before = dict(_selectors(installed)) if installed is not None else {}
    for path, selector in _selectors(settings) if nodes else ():
        now, was = _count(selector, nodes), _count(before[path], nodes) if path in before else 0
        told = f", and the installed settings select {was}" if was and was != now else ""
        if not now and path == ("nodeSelector",):
            continue  # `coverage` says what is no longer managed.
        if not now:
            change = "correct its labels: kubectl get nodes --show-labels"
            yield Warned(spelt(path), f"selects none of the {len(nodes)} nodes{told}", change)
        elif now == len(nodes) and 0 < was < now:
            yield Warned(
                spelt(path), f"selects all {now} nodes{told}", "correct its labels, if that is not meant"
            )
    managed = [node for node in nodes if settings.manages(node.labels)]
    for condition in sorted(settings.condition_types()):
        drained, counts = _with_condition(settings, condition, managed)
        policy = next((settings.policies(node.labels).of_condition(condition) for node in drained), None)
        if policy is None or not is_on_most(counts[policy.status], len(drained)):
            continue
        on = f"{counts[policy.status]} of {len(drained)} nodes"
        message = f"is {policy.status} on {on} now, so no drain starts for it"
        change = "name the status that is the fault as its `status`, or remove it"
        yield Warned(f"conditions.{condition}", message, change)


def _with_condition(
    settings: Settings, condition: str, managed: Sequence[Node]
) -> tuple[list[Node], Counter[str]]:
    """Return the nodes that a condition drains, and how many of them have each status of it."""
    drained = []
    for node in managed:
        policy = settings.policies(node.labels).of_condition(condition)
        if policy is not None and policy.drain:
            drained.append(node)
    seen = (node.condition(condition) for node in drained)
    return drained, Counter(one.status for one in seen if one is not None)


def _count(selector: LabelSelector, nodes: Sequence[Node]) -> int:
    return sum(selector.matches(node.labels) for node in nodes)


def _selectors(section: BaseModel, path: Path = ()) -> Iterator[tuple[Path, LabelSelector]]:
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
                yield from _selectors(each, here if key is None else (*here, key))
