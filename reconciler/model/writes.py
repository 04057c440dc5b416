"""What a pass writes to the cluster, the port for it, and how a pass sees what did not stay.

A `Publication` only shows something to other tools; no decision depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Protocol

from msgspec import Struct, field

from reconciler.model.instructions import hold_of
from reconciler.model.keys import OwnKeys, keys_of
from reconciler.model.limits import EARLIEST
from reconciler.model.node import MECHANIC_LABEL, Condition, Node, Taint
from reconciler.model.outcome import ActionKind
from reconciler.model.record import Record, record_of
from reconciler.model.snapshot import Ledger
from reconciler.model.tasks import Clients, Port


class ListChanges(Struct, frozen=True):
    """Entries of a node's lists to add and to remove; all others stay as they are when it is written.

    A taint replaces one with the same key and effect. One that is removed needs only these two.
    """

    finalizers: tuple[str, ...] = ()
    gone_finalizers: tuple[str, ...] = ()
    taints: tuple[Taint, ...] = ()
    gone_taints: tuple[Taint, ...] = ()

    @property
    def any(self) -> bool:
        """Whether there is any change."""
        return self != ListChanges()

    def of_finalizers(self, before: Iterable[str]) -> tuple[str, ...]:
        """Return the finalizers after the change."""
        kept = [one for one in before if one not in self.gone_finalizers]
        return tuple(dict.fromkeys((*kept, *self.finalizers)))

    def of_taints(self, before: Iterable[Taint]) -> tuple[Taint, ...]:
        """Return the taints after the change."""
        changed = {(one.key, one.effect) for one in (*self.taints, *self.gone_taints)}
        kept = [one for one in before if one in self.taints or (one.key, one.effect) not in changed]
        return tuple(dict.fromkeys((*kept, *self.taints)))


CORDON = "cordon"
LISTS = "lists"

REWRITTEN = "removed:record"
"""What `NodeWrite.rewritten` names: a record that a pass writes again, because somebody has removed it."""


class NodeWrite(Struct, frozen=True):
    """One patch of one node, with the state of the node that it was decided for.

    It names only keys under our own prefix, labels of adopted tools, annotations that features show, and what
    the triggers of profiles change. A value of None removes the key; `unschedulable` None changes nothing.
    `seen_by_checks` are the labels and annotations of others that the checks of profiles read, with None for
    a key that the node did not have. `copied` are those of ours that are about another node, which
    `seen_own` does not have.
    """

    node: str
    uid: str
    seen_unschedulable: bool
    seen_own: Mapping[str, str]
    own_prefix: str
    unschedulable: bool | None = None
    labels: Mapping[str, str | None] = field(default_factory=dict)
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    lists: ListChanges = ListChanges()
    seen_by_checks: Mapping[str, str | None] = field(default_factory=dict)
    copied: Mapping[str, str] = field(default_factory=dict)

    @property
    def keys(self) -> OwnKeys:
        """Our labels and annotations."""
        return keys_of(self.own_prefix)

    @property
    def bound_annotations(self) -> Mapping[str, str | None]:
        """The annotations with the UID of the node beside ours, as long as there are any.

        A copy of them on another node is known by that, see `Node.without_copies`.
        """
        keys = self.keys
        if keys.bound.isdisjoint(self.annotations):
            return self.annotations
        begin = "annotation:"
        after = {name.removeprefix(begin): name for name in self.seen_own if name.startswith(begin)}
        left = (after.keys() | self.annotations.keys()) & keys.bound - {keys.uid}
        ours = any(self.annotations.get(key, after.get(key)) is not None for key in left)
        return {**self.annotations, keys.uid: self.uid if ours else None}

    @property
    def changes(self) -> frozenset[str]:
        """The names of what it changes: `cordon`, `lists`, `label:<key>` and `annotation:<key>`."""
        named = {f"label:{key}" for key in self.labels} | {f"annotation:{key}" for key in self.annotations}
        cordon = {CORDON} if self.unschedulable is not None else set()
        return frozenset(named | cordon | ({LISTS} if self.lists.any else set()))

    @property
    def expected(self) -> Mapping[str, str | None]:
        """The labels and annotations, named as in `changes`, that have to be as they were seen.

        They are ours, those that it changes, and those that checks of profiles read; None for one that
        the node did not have. A write depends on them, on the UID and on the cordon, and on nothing else.
        """
        changed = (f"annotation:{key}" for key in self.annotations if self.keys.owns(key))
        absent = dict.fromkeys((*self.keys.texts, *(f"label:{key}" for key in self.labels), *changed))
        if f"label:{self.keys.record_kept}" in self.seen_own:
            # The label names the text that counts, wherever it is.
            del absent[f"annotation:{self.keys.record}"]
        return {**absent, **self.seen_own, **self.seen_by_checks}

    @property
    def essential(self) -> frozenset[str]:
        """Those of `changes` without which the action of the write has not happened.

        Other labels and annotations of ours only show something.
        """
        keys = self.keys
        kept = {CORDON, LISTS, f"annotation:{keys.record}", f"annotation:{keys.maintenance_data}"}
        kept.add(f"label:{keys.record_kept}")
        return self.changes & (kept | {f"label:{key}" for key in self.labels_of_triggers})

    @property
    def rewritten(self) -> frozenset[str]:
        """`REWRITTEN` if it only gives a node in maintenance the record that the node does not have.

        The cordon or the label with the state shows the maintenance. A write that cordons waits for nothing.
        """
        keys, seen = self.keys, self.seen_own
        had, shown = f"annotation:{keys.record}" in seen, f"label:{keys.state}" in seen
        again = (self.seen_unschedulable or shown) and not had and bool(self.annotations.get(keys.record))
        return frozenset({REWRITTEN} if again and not self.unschedulable else ())

    @property
    def labels_of_triggers(self) -> frozenset[str]:
        """The labels that a profile is to change: without them its step has not happened."""
        return frozenset(key for key in self.labels if not self.keys.owns(key) and key != MECHANIC_LABEL)

    @property
    def only_shows(self) -> bool:
        """Whether it changes only what other tools see, or names the node of what a person wrote by hand."""
        keys = self.keys
        ours = any(keys.owns(key) and key != keys.uid for key in self.annotations) or bool(
            self.labels.keys() - {keys.deadline}
        )
        return self.unschedulable is None and not ours and not self.lists.any


class Publication(Protocol):
    """One such write about one node; `act` sends it after everything else."""

    @property
    def node(self) -> str:
        """The node that it is about."""

    @property
    def action(self) -> ActionKind:
        """Its name in reports and outcomes."""

    def send(self, clients: Clients) -> str | None:
        """Send the write, and return what people should know; raises ClusterError and LockLost."""


CONDITIONS = ActionKind("conditions", "update its lifecycle conditions")
TAINT = ActionKind("taint", "update its taint")
LABELS = ActionKind("labels", "update its labels")

ACTIONS = (CONDITIONS, TAINT, LABELS)


class ConditionsWrite(Struct, frozen=True):
    """Conditions to add to a node's status, and the types of conditions to remove.

    A `transition` of None keeps the existing moment. It is a Publication.
    """

    node: str
    uid: str
    put: tuple[Condition, ...] = ()
    gone: tuple[str, ...] = ()

    action: ClassVar[ActionKind] = CONDITIONS

    def send(self, clients: Clients) -> None:
        """Write the conditions; raises ClusterError and LockLost."""
        WRITER.of(clients).patch_conditions(self)


class TaintWrite(Struct, frozen=True):
    """A taint of ours to add to a node, or to remove if it is not `wanted`. It is a Publication.

    Key and effect identify a taint. All other taints of the node stay as they are.
    """

    node: str
    uid: str
    taint: Taint
    wanted: bool

    action: ClassVar[ActionKind] = TAINT

    def send(self, clients: Clients) -> str | None:
        """Write the taint, and return what people should know; raises ClusterError and LockLost."""
        return WRITER.of(clients).patch_taint(self)


class LabelsWrite(Struct, frozen=True):
    """Labels of a node that show something, under keys of other programs. It is a Publication."""

    node: str
    uid: str
    labels: Mapping[str, str]

    action: ClassVar[ActionKind] = LABELS

    def send(self, clients: Clients) -> str | None:
        """Write the labels, and return what people should know; raises ClusterError and LockLost."""
        return WRITER.of(clients).patch_labels(self)


class WriteAnswer(Struct, frozen=True):
    """What people should know of a patch that is done. `lost` is what of `NodeWrite.changes` did not stay."""

    said: str
    lost: frozenset[str]


class ClusterWriter(Protocol):
    """Writes of one pass; each checks the lock first and raises LockLost if it is no longer ours."""

    def patch_node(self, write: NodeWrite) -> WriteAnswer | None:
        """Patch a node that is as the write expects; return what people should know, if anything.

        The answer is compared with what was sent. If something essential did not stay, what stayed is taken
        back, and NotKept is raised. Raises Conflict if something that the write expects has changed, NotFound
        if the node is gone.
        """

    def patch_conditions(self, write: ConditionsWrite) -> None:
        """Add conditions to a node's status, and remove others; Conflict if its UID is another one."""

    def patch_taint(self, write: TaintWrite) -> str | None:
        """Add or remove one taint of a node; return what people should know, if anything.

        The other taints stay, also those that another controller changes at the same time. Raises NotFound
        if the node is gone, also if another one has its name, and Conflict if others keep writing it.
        """

    def patch_labels(self, write: LabelsWrite) -> str | None:
        """Set labels of a node; return what people should know, if anything.

        Raises Conflict if the node was deleted and created again, NotFound if it is gone.
        """

    def write_ledger(self, ledger: Ledger) -> None:
        """Write our ConfigMap, or create it."""


WRITER: Port[ClusterWriter] = Port("writer", "this process does not write to nodes")

NO_LISTS = ListChanges()


def own_keys(node: Node, prefix: str, extra_labels: Iterable[str] = ()) -> dict[str, str]:
    """Return our labels and annotations with their values, as `NodeWrite.seen_own` holds them.

    Ours are all keys `prefix/...`, and the labels in `extra_labels` (those of adopted tools, which a write
    names). Labels become `label:<key>`, annotations `annotation:<key>`; absent keys have no entry.
    """
    keys = keys_of(prefix)
    extra = frozenset(extra_labels)
    labels = {f"label:{key}": value for key, value in node.labels.items() if keys.owns(key) or key in extra}
    annotations = {f"annotation:{key}": value for key, value in node.annotations.items() if keys.owns(key)}
    return labels | annotations


def used_keys(node: Node, labels: Iterable[str], annotations: Iterable[str]) -> dict[str, str | None]:
    """Return these keys of the node with their values, as `NodeWrite.seen_by_checks` holds them.

    Labels become `label:<key>`, annotations `annotation:<key>`; an absent key has the value None.
    """
    found = {f"label:{key}": node.labels.get(key) for key in labels}
    return found | {f"annotation:{key}": node.annotations.get(key) for key in annotations}


def node_write(
    node: Node,
    prefix: str,
    *,
    unschedulable: bool | None = None,
    labels: Mapping[str, str | None] | None = None,
    annotations: Mapping[str, str | None] | None = None,
    lists: ListChanges = NO_LISTS,
) -> NodeWrite:
    """Return the patch with these changes to the node as it was read; see NodeWrite.

    It also removes what was copied from another node: the UID that it writes would say that all is about
    this one.
    """
    named = {**dict.fromkeys(node.copied_labels), **(labels or {})}
    return NodeWrite(
        node=node.name,
        uid=node.uid,
        seen_unschedulable=node.unschedulable,
        seen_own=own_keys(node, prefix, named),
        own_prefix=prefix,
        unschedulable=unschedulable,
        labels=named,
        annotations={**dict.fromkeys(node.copied_annotations), **(annotations or {})},
        lists=lists,
        copied=copies_on(node),
    )


def copies_on(node: Node) -> dict[str, str]:
    """Return the labels and annotations of ours that are about another node, named as `own_keys` does."""
    labels = {f"label:{key}": text for key, text in node.copied_labels.items()}
    return labels | {f"annotation:{key}": text for key, text in node.copied_annotations.items()}


def not_kept(node: Node, write: NodeWrite) -> frozenset[str]:
    """Return those of `write.changes` that the node, as the answer to the write shows it, does not have."""
    kept = {f"label:{key}" for key, text in write.labels.items() if node.labels.get(key) == text}
    kept |= {
        f"annotation:{key}" for key, text in write.annotations.items() if node.annotations.get(key) == text
    }
    if write.unschedulable == node.unschedulable:
        kept.add(CORDON)
    finalizers, taints = write.lists.of_finalizers(node.finalizers), write.lists.of_taints(node.taints)
    if set(finalizers) == set(node.finalizers) and set(taints) == set(node.taints):
        kept.add(LISTS)
    return write.changes - kept


def shows_part(node: Node, write: NodeWrite) -> bool:
    """Whether the node has the record that the write has, but not all of it stayed.

    All else that the decision used is as it was seen, or as the write wants it.
    """
    key = write.keys.record
    fresh = (write.annotations.get(key) or "") != write.seen_own.get(f"annotation:{key}", "")
    landed = fresh and f"annotation:{key}" in write.changes - not_kept(node, write)
    if node.uid != write.uid or not landed or changed_for_checks(node, write):
        return False
    wanted = {f"label:{key}" for key in write.labels} | {f"annotation:{key}" for key in write.annotations}
    have, seen = own_keys(node, write.own_prefix, write.labels), write.seen_own
    others = (have.keys() | seen.keys()) - wanted
    return all(have.get(key) == seen.get(key) for key in others)


def taken_back(node: Node, write: NodeWrite) -> NodeWrite | None:
    """Return the write that takes back what stayed of a write, None if nothing did.

    `node` is as the answer shows it. Keys of others and lists stay: the next try sets them again.
    """
    stayed = write.changes - not_kept(node, write)
    labels = {key: write.seen_own.get(f"label:{key}") for key in write.labels if f"label:{key}" in stayed}
    annotations = {
        key: write.seen_own.get(f"annotation:{key}")
        for key in write.annotations
        if f"annotation:{key}" in stayed and write.keys.owns(key)
    }
    changes = write.unschedulable != write.seen_unschedulable
    cordon = write.seen_unschedulable if CORDON in stayed and changes else None
    if not labels and not annotations and cordon is None:
        return None
    return node_write(node, write.own_prefix, unschedulable=cordon, labels=labels, annotations=annotations)


def shows_intent(node: Node, write: NodeWrite) -> bool:
    """Whether the node is already as the write wants it."""
    return not not_kept(node, write)


def is_as_seen(node: Node, write: NodeWrite) -> bool:
    """Whether UID, `unschedulable` and all that the write expects are unchanged since then."""
    return (
        node.uid == write.uid
        and node.unschedulable == write.seen_unschedulable
        and all(_text(node, name) == text for name, text in write.expected.items())
    )


def _text(node: Node, name: str) -> str | None:
    kind, _, key = name.partition(":")
    return (node.labels if kind == "label" else node.annotations).get(key)


def changed_for_checks(node: Node, write: NodeWrite) -> tuple[str, ...]:
    """Return the keys of `seen_by_checks` that have another value by now, sorted."""
    changed = (name for name, text in write.seen_by_checks.items() if _text(node, name) != text)
    return tuple(sorted(name.partition(":")[2] for name in changed))


def annotations_seen(write: NodeWrite) -> frozenset[str]:
    """Return the annotations without our prefix that a write changes, or compares with what was seen."""
    start = "annotation:"
    used = (name.removeprefix(start) for name in write.seen_by_checks if name.startswith(start))
    return frozenset({*write.annotations, *used})


_NONE = keys_of("")


def names_of_signs() -> frozenset[str]:
    """Return the names of the keys that show a prefix, for `Wanted`."""
    signs = {_NONE.record, _NONE.maintenance_state, *_NONE.instructions} - {_NONE.said_before}
    return frozenset(key.removeprefix("/") for key in signs)


def other_prefixes(node: Node, prefix: str) -> tuple[str, ...]:
    """Return the prefixes other than `prefix` that are in use on a node, sorted.

    Many programs have keys with names such as `hold`. So an annotation counts if it is the record of the
    node, or an instruction with its giver.
    """
    found = {
        key.removesuffix(_NONE.maintenance_state)
        for key in node.labels
        if key.endswith(_NONE.maintenance_state)
    }
    for key, text in node.annotations.items():
        place, slash, name = key.rpartition("/")
        if slash + name == _NONE.record and isinstance(record_of(node, place), Record):
            found.add(place)
        elif slash + name in _NONE.instructions:
            said = hold_of(text, EARLIEST)
            if said is not None and said.word.by:
                found.add(place)
    return tuple(sorted(found - {prefix}))
