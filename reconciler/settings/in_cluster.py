"""What the settings mean for the nodes that a cluster has now: whom each selector and condition is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from reconciler.model.limits import count_of
from reconciler.model.node import Node
from reconciler.model.selector import LabelSelector
from reconciler.settings.coverage import selectors
from reconciler.settings.mistakes import KeyWarning, spelt
from reconciler.settings.policies import is_on_most
from reconciler.settings.schema import Settings


def nodes_in_words(settings: Settings, nodes: Sequence[Node]) -> Iterator[str]:
    """Yield how many nodes are managed, and on how many of them each condition of the settings is so now."""
    managed = [node for node in nodes if settings.manages(node.labels)]
    yield f"  {len(managed)} of {count_of(len(nodes), 'node', 'are')} managed."
    for condition in sorted(settings.condition_types()):
        drained, counts = _with_condition(settings, condition, managed)
        absent = len(drained) - counts.total()
        each = [f"{status} on {count}" for status, count in sorted(counts.items())]
        each.append(f"absent on {absent if counts else 'all'}")
        yield (
            f"  Condition {condition}: {', '.join(each)} of {count_of(len(drained), 'node')} that it "
            f"may drain."
        )
    for path, selector in selectors(settings):
        if not selector.selects_all:
            yield f"  {spelt(path)} selects {_count(selector, nodes)} of {count_of(len(nodes), 'node')}."


def nodes_to_question(settings: Settings, nodes: Sequence[Node]) -> Iterator[KeyWarning]:
    """Yield what is about none or nearly all of the nodes, and probably not meant.

    `coverage` says what is so of `nodeSelector`, and of what selected nodes before.
    """
    for path, selector in selectors(settings) if nodes else ():
        if path != ("nodeSelector",) and not _count(selector, nodes):
            change = "correct its labels: kubectl get nodes --show-labels"
            yield KeyWarning(spelt(path), f"selects none of the {count_of(len(nodes), 'node')}", change)
    managed = [node for node in nodes if settings.manages(node.labels)]
    for condition in sorted(settings.condition_types()):
        drained, counts = _with_condition(settings, condition, managed)
        policy = next((settings.policies(node.labels).of_condition(condition) for node in drained), None)
        if policy is None or not is_on_most(counts[policy.status], len(drained)):
            continue
        on = f"{counts[policy.status]} of {count_of(len(drained), 'node')}"
        message = f"is {policy.status} on {on} now, so no drain starts for it"
        change = "name the status that is the fault as its `status`, or remove it"
        yield KeyWarning(f"conditions.{condition}", message, change)


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
