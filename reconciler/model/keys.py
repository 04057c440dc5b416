"""Keys: all our labels and annotations, each spelled once, and who writes and removes each.

The node agent imports this file, so it needs nothing but the standard library.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass  # noqa: TID251 - the agent imports this file
from enum import Enum, auto
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconciler.model.permission_kinds import PermissionKind

DEFAULT_PREFIX = "node-maintenance.dev"


class Writer(Enum):
    """Who writes a key."""

    PASS = auto()
    COMMAND = auto()
    """A command of this program, for a person."""

    AGENT = auto()
    HAND = auto()
    """A person, with kubectl. Nothing of this program writes it, so nothing removes it."""


ANNOTATION, LABEL, TAINT = "annotation", "label", "taint"


@dataclass(frozen=True)
class NodeKey:
    """A key on nodes: its attribute of OwnKeys, its writer, and the command by which a person ends it.

    A plugin declares its own keys in the list KEYS of its `keys.py`; their attribute is the name below the
    prefix. `with_case`: it belongs to the case of the node, and goes when a person releases the node. `kind`
    is what has the key.
    """

    attribute: str
    writer: Writer
    with_case: bool = False
    ends: str = ""
    kind: str = ANNOTATION

    def below(self, prefix: str) -> str:
        """Return the key of a plugin in the installation that has this prefix."""
        return f"{prefix}/{self.attribute}"


NODE_KEYS = (
    NodeKey("uid", Writer.PASS, with_case=True),
    NodeKey("record", Writer.PASS, with_case=True),
    NodeKey("record_kept", Writer.PASS, with_case=True, kind=LABEL),
    NodeKey("state", Writer.PASS, with_case=True, kind=LABEL),
    NodeKey("why", Writer.PASS, with_case=True, kind=LABEL),
    NodeKey("deadline", Writer.PASS, with_case=True, kind=LABEL),
    NodeKey("maintenance", Writer.PASS, with_case=True, kind=TAINT),
    NodeKey("power", Writer.PASS, with_case=True),
    NodeKey("maintenance_state", Writer.PASS, kind=LABEL),
    NodeKey("maintenance_data", Writer.PASS),
    NodeKey("said_before", Writer.COMMAND, with_case=True),
    NodeKey("hold", Writer.COMMAND, ends="reconciler resume NODE"),
    NodeKey("hold_of_many", Writer.COMMAND, ends="reconciler resume --all, or --pool"),
    NodeKey("defer", Writer.COMMAND, ends="reconciler resume NODE"),
    NodeKey("request", Writer.COMMAND, ends="reconciler request NODE --cancel"),
    NodeKey("ignore", Writer.HAND, kind=LABEL),
    NodeKey("maintenance_profile", Writer.HAND, kind=LABEL),
    NodeKey("log_details", Writer.HAND, kind=LABEL),
)
"""Every key of the core on nodes. `OwnKeys.on_nodes` has those of plugins as well."""


def _key(name: str) -> cached_property[str]:
    return cached_property(lambda keys: f"{keys.prefix}/{name}")


@dataclass(frozen=True)
class OwnKeys:
    """The keys of the installation that has this prefix (`keys.prefix` in the settings)."""

    prefix: str = DEFAULT_PREFIX

    # On a node.

    uid = _key("uid")
    """The annotation with the UID of the node that our other labels and annotations on it are about.

    Clouds copy labels and annotations to new nodes, as AKS does in an image upgrade.
    """

    record = _key("record")
    """The annotation with the node's record."""

    record_kept = _key("record-kept")
    """The label of a node that can't hold its record: it names the text in our ConfigMap."""

    state = _key("state")
    """The label with the worst state of all profiles, absent while that is operational."""

    why = _key("why")
    """The label beside it with what the maintenance is for and how far it is, for lists of nodes."""

    ignore = _key("ignore")
    """The label by which a person excludes the node."""

    request = _key("request")
    """The annotation by which a person or a program requests maintenance."""

    maintenance_profile = _key("maintenance-profile")
    """The label by which a person selects the profiles of the settings for the node, joined by `--`."""

    maintenance_state = _key("maintenance-state")
    """The label with the worst state of all profiles, on every managed node if the settings have any."""

    maintenance_data = _key("maintenance-data")
    """The annotation with the data of the profiles of the settings, in the form of maintenance-controller."""

    log_details = _key("maintenance-log-details")
    """The label by which a person asks for the answers of all checks in the log."""

    hold = _key("hold")
    """The annotation by which a person holds the node."""

    hold_of_many = _key("hold-of-many")
    """The annotation with the copy of a hold of many nodes, for a drain that runs."""

    said_before = _key("said-before")
    """The annotation with what people have ended: holds and the like, or a case, by a release."""

    defer = _key("defer")
    """The annotation by which a person defers the drain of the node."""

    power = _key("power")
    """The annotation with what was done with the power of the node's VM."""

    deadline = _key("deadline")
    """The label with the deadline of announced maintenance, a scheduling hint (`hints.label`)."""

    maintenance = _key("maintenance")
    """The taint of a node with announced maintenance, a scheduling hint (`hints.taint`)."""

    # On a pod.

    drain = _key("drain")
    """The label or annotation that sets what a drain does with the pod."""

    wait_completed = _key("wait-completed")
    """The label or annotation by which a pod asks to finish first, if its value is `true`."""

    restart = _key("restart")
    """The label that allows a restart of the pod's workload if it has a single replica."""

    @cached_property
    def instructions(self) -> tuple[str, ...]:
        """Return the annotations by which people hold, defer or permit the drain of the node."""
        return (self.hold, self.hold_of_many, self.defer, *self.permissions, self.said_before)

    @cached_property
    def permissions(self) -> Mapping[str, PermissionKind]:
        """Return each kind of permission that features bring, by its annotation."""
        # The agent asks for none, and imports no feature.
        from reconciler.model.permission_kinds import permission_kinds

        return {f"{self.prefix}/{kind.name}": kind for kind in permission_kinds().values()}

    def release(self, node: str) -> str:
        """Return the command by which a person removes all of them from a node."""
        prefix = f" --prefix {self.prefix}" if self.prefix != DEFAULT_PREFIX else ""
        return f"reconciler release {node}{prefix}"

    def drain_by_hand(self, node: str) -> str:
        """Return the command by which a person drains a node, whatever the settings say."""
        prefix = f" --prefix {self.prefix}" if self.prefix != DEFAULT_PREFIX else ""
        # As in kubectl, a node with pods of DaemonSets is refused without this option.
        return f"reconciler drain {node} --ignore-daemonsets{prefix}"

    def permit(self, command: str, node: str) -> str:
        """Return the command of this name by which a person permits the drain of a node, and its profiles."""
        config = " --config FILE" if self.prefix != DEFAULT_PREFIX else ""
        return f"reconciler {command} {node}{config}"

    @cached_property
    def bound(self) -> frozenset[str]:
        """Return the keys that are about one node, which `uid` names: all that passes and commands write.

        What the agent publishes names its VM. The labels that people set may be those of a pool.
        """
        return self._written_by(Writer.PASS, Writer.COMMAND)

    @cached_property
    def of_passes(self) -> frozenset[str]:
        """Return what passes write."""
        return self._written_by(Writer.PASS)

    @cached_property
    def of_people(self) -> frozenset[str]:
        """Return the annotations that commands write for people, who may also write them by hand."""
        return self._written_by(Writer.COMMAND)

    @cached_property
    def of_agent(self) -> frozenset[str]:
        """Return the annotations that the node agent writes."""
        return self._written_by(Writer.AGENT)

    def _written_by(self, *writers: Writer) -> frozenset[str]:
        return frozenset(key for key, about in self.on_nodes.items() if about.writer in writers)

    @cached_property
    def on_nodes(self) -> dict[str, NodeKey]:
        """Return what is known of each key that a node can have, by the key.

        `reconciler release` removes by this list, and names the rest. If two have one key, raises PluginError
        for a plugin that is installed, else ValueError with both files.
        """
        # The agent asks for none, and imports no list of plugins.
        from reconciler import plugins

        of_core = [(getattr(self, node_key.attribute), node_key) for node_key in NODE_KEYS]
        of_plugins = [
            *(
                (module, NodeKey(kind.name, Writer.COMMAND, ends=f"reconciler {kind.command} NODE --cancel"))
                for module in plugins.modules("permissions")
                for kind in module.PERMISSIONS
            ),
            *((module, node_key) for module in plugins.modules("keys") for node_key in module.KEYS),
        ]
        each = [
            ("reconciler/model/keys.py", of_core),
            *((plugins.file_of(module), [(one.below(self.prefix), one)]) for module, one in of_plugins),
        ]
        return dict(plugins.by_name("key of nodes", each, lambda pair: pair[0]).values())

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Return each label and annotation that a node can have, as `label:<key>` or `annotation:<key>`."""
        return tuple(f"{one.kind}:{key}" for key, one in self.on_nodes.items() if one.kind != TAINT)

    def released(self, writers: Collection[Writer] = ()) -> frozenset[str]:
        """Return the keys that a release of a node removes: those of its case, and those of these writers."""
        return frozenset(key for key, one in self.on_nodes.items() if one.with_case or one.writer in writers)

    def owns(self, key: str) -> bool:
        """Whether a label or annotation of this key is ours."""
        return key.startswith(f"{self.prefix.rstrip('/')}/")


@lru_cache(maxsize=16)
def keys_of(prefix: str = DEFAULT_PREFIX) -> OwnKeys:
    """Return the keys of the installation that has this prefix; each pass asks for them many times a node."""
    return OwnKeys(prefix)
