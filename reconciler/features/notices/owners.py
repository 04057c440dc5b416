"""Who owns the workloads on a node: the addresses that the namespaces of its pods have, and their reader."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import tzinfo
from operator import itemgetter

from msgspec import Struct, field

from reconciler.features.notices.deliveries import Delivery, delivery_of
from reconciler.features.notices.messages import Message
from reconciler.features.notices.settings import Notify
from reconciler.features.notices.transports.sending import NotSent
from reconciler.kubernetes import objects
from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.connection import CORE, Connection
from reconciler.model.errors import ClusterError
from reconciler.model.limits import ADDRESSES
from reconciler.model.values import replace
from reconciler.settings.fields import is_address

MOST = 50
"""Namespaces of one node, and addresses of one delivery."""

_CHANNEL = re.compile(r"#?[A-Za-z0-9_-]{1,80}")
_LONGEST = 1024


class Namespace(Struct, frozen=True):
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
    texts = found[:_LONGEST].split(",")
    # The last one of a text that is too long is not whole.
    for text in texts[:-1] if len(found) > _LONGEST else texts:
        address = text.strip()
        if entry.mail is not None:
            domain = address.rpartition("@")[2].casefold()
            if is_address(address) and domain in {one.casefold() for one in to.domains}:
                yield address
        elif _CHANNEL.fullmatch(address):
            yield address


class ForOwners(Struct, frozen=True):
    """The deliveries to owners, and the namespaces of which addresses were left out, sorted."""

    deliveries: tuple[Delivery, ...] = ()
    cut: tuple[str, ...] = ()


def for_owners(
    entry: Notify,
    delivery: Delivery,
    on_node: Mapping[str, Iterable[str]],
    namespaces: Mapping[str, Namespace],
    zone: tzinfo,
) -> ForOwners:
    """Return one delivery for each owner, with the messages about nodes on which they have pods.

    Their texts name only what is in the namespaces of this owner. `on_node` has the namespaces of the pods of
    each node. Each namespace has a few addresses at most, and no namespace gets a second one before each of
    the others has its first.
    """
    own = set(entry.mail.to) if entry.mail is not None else {entry.slack.channel if entry.slack else ""}
    wanted: dict[str, list[str]] = {}
    nodes: dict[str, set[str]] = {}
    theirs: dict[str, set[str]] = {}
    for node, names in on_node.items():
        for name in names:
            if name not in wanted:
                given = addresses(entry, namespaces.get(name, Namespace()))
                wanted[name] = [name for name in dict.fromkeys(given) if name not in own]
            for address in wanted[name][:ADDRESSES]:
                nodes.setdefault(address, set()).add(node)
                theirs.setdefault(address, set()).add(name)
    turns = ((turn, wanted[name][turn]) for name in sorted(wanted) for turn in range(len(wanted[name])))
    chosen = [address for turn, address in sorted(turns, key=itemgetter(0)) if turn < ADDRESSES]
    served = list(dict.fromkeys(chosen))[:MOST]
    found = []
    for address in served:
        about = (message for message in delivery.messages if message.node in nodes[address])
        messages = tuple(one.for_owners(theirs[address]) for one in about)
        found.append(replace(delivery_of(entry, messages, zone, now=delivery.now), recipient=address))
    cut = (name for name, given in wanted.items() if not set(given) <= set(served))
    return ForOwners(tuple(found), tuple(sorted(cut)))


class PodOwners:
    """Reads pods and namespaces for messages that go to owners. No pass waits for it."""

    def __init__(self, connection: Connection, cluster: Cluster) -> None:
        """Use this connection, and this reader of pods."""
        self._connection, self._cluster = connection, cluster

    def pods(self, messages: Iterable[Message]) -> dict[str, tuple[str, ...]]:
        """Return the namespaces of the pods on the node of each message, by the id of its case.

        Pods of DaemonSets do not leave a node, so they concern nobody. A case whose namespaces are known
        keeps them: its pods may be gone by now. Raises NotSent.
        """
        found: dict[str, tuple[str, ...]] = {}
        try:
            for message in messages:
                if message.namespaces:
                    found[message.case] = message.namespaces
                elif message.node and message.case not in found:
                    pods = self._cluster.pods(message.node)
                    names = {
                        pod.namespace for pod in pods if pod.owner is None or pod.owner.kind != "DaemonSet"
                    }
                    found[message.case] = tuple(sorted(names)[:MOST])
        except ClusterError as error:
            raise NotSent(f"the pods of a node can't be read: {error}") from error
        return found

    def namespaces(self) -> Mapping[str, Namespace]:
        """Return every namespace by its name; raises NotSent."""
        try:
            found, _ = objects.get_list(self._connection, CORE / "namespaces", objects.OnlyMetadata)
        except ClusterError as error:
            raise NotSent(f"the namespaces can't be read: {error}") from error
        return {
            one.metadata.name: Namespace(one.metadata.labels or {}, one.metadata.annotations or {})
            for one in found
        }
