"""What new settings no longer guard, compared with those before: a mistake in valid settings is seen here."""

from __future__ import annotations

from collections.abc import Iterator, Set

from pydantic.alias_generators import to_camel

from reconciler.model.event import Kind
from reconciler.settings.mistakes import Warned
from reconciler.settings.schema import Mode, Settings


def selects_none(nodes: int, managed: int) -> Iterator[Warned]:
    """Yield that the settings manage none of so many nodes."""
    if nodes and not managed:
        yield Warned("nodeSelector", f"selects none of the {nodes} nodes", "correct its labels")


def losses(
    before: Settings, after: Settings, managed_before: Set[str], managed: Set[str], nodes: Set[str]
) -> Iterator[Warned]:
    """Yield what the settings `after` no longer do: nodes that they leave alone, and cases that they end.

    The sets have names of nodes: those that both settings manage, as far as they exist, and all that exist.
    """
    known = managed_before & nodes
    lost = known - managed
    yield from selects_none(len(nodes), len(managed))
    if managed and 2 * len(lost) > len(known):
        message = f"leaves out {len(lost)} of the {len(known)} nodes that were managed, such as {min(lost)}"
        yield Warned("nodeSelector", message, "correct its labels, if that is not meant")
    if before.only_workflows or after.only_workflows:
        # A file of maintenance-controller says nothing about events.
        return
    if before.mode is Mode.ENFORCE and after.mode is not Mode.ENFORCE:
        yield Warned("mode", f"is {after.mode.value}, and was Enforce: no drain starts", "set mode: Enforce")
    had, has = before.policies({}), after.policies({})
    for kind in Kind:
        drained, drains = had[kind, ""], has[kind, ""]
        if drained is not None and drained.drain and (drains is None or not drains.drain):
            message = f"is false, and was true: a {kind.value} drains no node any more"
            yield Warned(f"events.{kind.value}.drain", message, "set it to true, if that is not meant")
    for condition in sorted(before.condition_types() - after.condition_types()):
        message = "is gone: it drains no node any more"
        yield Warned(f"conditions.{condition}", message, "add it again, if that is not meant")
    enabled = {name for name, section in after.sources if section.enabled}
    for name, section in before.sources:
        if section.enabled and name not in enabled:
            message = "is disabled, and was enabled: what it announces is not seen"
            yield Warned(f"sources.{to_camel(name)}", message, "enable it, if that is not meant")
