"""Who owns the workloads on a node: the addresses that the namespaces of its pods have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import tzinfo

from reconciler.notices.deliveries import Delivery, delivery_of
from reconciler.settings.sections.notify import Notify, is_address

MOST = 50
"""Namespaces of one node, and addresses of one delivery."""

_CHANNEL = re.compile(r"#?[A-Za-z0-9_-]{1,80}")
_LONGEST = 1024


@dataclass(frozen=True, slots=True)
class Namespace:
    """The labels and annotations of a namespace."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


def addresses(entry: Notify, namespace: Namespace) -> Iterator[str]:
    """Yield the addresses of a namespace for this entry; what is no address, or not permitted, is left out.

    Whoever may change a namespace decides on them, so mail goes only to the domains of the settings.
    """
    to = entry.to
    if to is None:
        return
    found = namespace.labels.get(to.namespace_label or "") or namespace.annotations.get(
        to.namespace_annotation or "", ""
    )
    for text in found[:_LONGEST].split(","):
        address = text.strip()
        if entry.mail is not None:
            domain = address.rpartition("@")[2].casefold()
            if is_address(address) and domain in {one.casefold() for one in to.domains}:
                yield address
        elif _CHANNEL.fullmatch(address):
            yield address


def for_owners(
    entry: Notify,
    delivery: Delivery,
    on_node: Mapping[str, Iterable[str]],
    namespaces: Mapping[str, Namespace],
    zone: tzinfo,
) -> tuple[Delivery, ...]:
    """Return one delivery for each owner, with the messages about nodes on which they have pods.

    `on_node` has the namespaces of the pods of each node.
    """
    nodes: dict[str, set[str]] = {}
    for node, names in on_node.items():
        for name in names:
            for address in addresses(entry, namespaces.get(name, Namespace())):
                nodes.setdefault(address, set()).add(node)
    own = set(entry.mail.to) if entry.mail is not None else {entry.slack.channel if entry.slack else ""}
    found = []
    for address in sorted(set(nodes) - own)[:MOST]:
        messages = tuple(one for one in delivery.messages if one.node in nodes[address])
        found.append(replace(delivery_of(entry, messages, zone), recipient=address))
    return tuple(found)
