"""What commands by hand have in common: who runs them, which nodes and keys, and the Events about it."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, tzinfo
from functools import cached_property
from shlex import quote
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from msgspec import Struct

from jobs.runtime.clock import ServerClock
from jobs.runtime.environment import Target, VariablesAsWritten, connected
from jobs.runtime.output import echo, width
from jobs.runtime.process import EventWriter, first, processes
from reconciler.calendar.values import near, with_time_left
from reconciler.kubernetes import objects
from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.config_maps import read_installed
from reconciler.kubernetes.connection import LEDGER, Connection, Request, api, core
from reconciler.kubernetes.reconcilers import LOCK
from reconciler.kubernetes.wire.shapes import decode
from reconciler.model import limits
from reconciler.model.errors import ClusterError, Conflict, NotFound, SettingsError, Unauthorized, Unreachable
from reconciler.model.instructions import ALL, unverified
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.limits import count_of, excerpt, first_of, is_object_name
from reconciler.model.node import POOL_ANNOTATIONS, Node, Wanted
from reconciler.model.plan import Notice
from reconciler.model.ports import Notification
from reconciler.model.selector import LabelSelector
from reconciler.model.writes import NodeWrite, WriteAnswer, names_of_signs, other_prefixes, own_keys

if TYPE_CHECKING:
    from jobs.runtime.settings_source import SettingsInUse


def person() -> str:
    """Return who runs the command, as user@host; a container may have no name for its user."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


class _UserInfo(Struct, frozen=True):
    username: str = ""


class _ReviewStatus(Struct, rename="camel", frozen=True):
    user_info: _UserInfo = _UserInfo()


class _Review(Struct, frozen=True):
    """authentication.k8s.io/v1 SelfSubjectReview."""

    status: _ReviewStatus = _ReviewStatus()


def author(connection: Connection) -> str:
    """Return who gives an instruction: the user that the API server sees, which nobody can choose.

    If the API server does not say it, or it is no text for an annotation, user@host, marked as unverified.
    """
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    place = api("authentication.k8s.io", "v1") / "selfsubjectreviews"
    try:
        answer = connection.send(Request("POST", place, body=body))
        user = decode(_Review, answer).status.user_info.username
    except ClusterError:
        user = ""
    if user.isprintable() and user and len(user) <= limits.NAME:
        return user
    return unverified(person())


_HELPED = 5
"""Names for which a similar one is looked up, which takes long among thousands."""


def check_nodes(names: Iterable[str], known: Collection[str]) -> None:
    """Raise NotFound, with a line for each name that no node has."""
    missing = [name for name in dict.fromkeys(names) if name not in known]
    if missing:
        every = sorted(known)
        lines = [_line(name, every if place < _HELPED else []) for place, name in enumerate(missing)]
        raise NotFound("\n".join(lines), status=404)


def _line(name: str, known: list[str]) -> str:
    if not is_object_name(name):
        return f"{excerpt(name)}: there is no such node"
    # People type the part of a long name that they remember, which no measure of likeness finds.
    parts = [each for each in known if name in each]
    similar = f"; did you mean one of these? {first_of(parts, _HELPED)}" if parts else near(name, known)
    return f"{name}: there is no such node{similar}"


def whole_name(name: str, known: Collection[str]) -> str:
    """Return the only one of the names of nodes that ends with this one, else the name as it is."""
    ends = [each for each in known if each.endswith(name)]
    return ends[0] if len(ends) == 1 and name and name not in known else name


def whole_names(names: Iterable[str], known: Collection[str]) -> list[str]:
    """Return the names of these nodes, each once; NotFound as in `check_nodes`. See `whole_name`."""
    whole = list(dict.fromkeys(whole_name(name, known) for name in names))
    check_nodes(whole, known)
    return whole


_ONE_BY_ONE = 3
"""Nodes with the same answer that have a line each, and nodes that a line about more of them names."""


_UTC = ZoneInfo("UTC")


class Said(Struct, frozen=True):
    """What a command says of one node; `ok` is False for what was not done."""

    node: str
    text: str
    ok: bool = True


def echo_each(answers: Iterable[Said], zone: ZoneInfo = _UTC) -> None:
    """Print what is said of each node, with moments in `zone`. More than a few with the same share a line.

    Without a terminal, that line names all of them.
    """
    # They load the settings, which a drain by hand does not need.
    from reconciler.report.people import for_any
    from reconciler.report.text import shown

    alike: dict[tuple[str, bool], list[Said]] = {}
    for answer in answers:
        # With one space between words, a line that goes on looks like no row, whoever wrote the reason.
        said = Said(answer.node, " ".join(answer.text.split()), answer.ok)
        alike.setdefault((for_any(said.node, said.text), said.ok), []).append(said)
    columns = width()
    for (text, ok), nodes in alike.items():
        names = [said.node for said in nodes]
        lines = [f"{said.node}: {said.text}" for said in nodes]
        if len(nodes) > _ONE_BY_ONE:
            shown_names = first_of(names, _ONE_BY_ONE if columns is not None else len(names))
            lines = [f"{count_of(len(nodes), 'node')} ({shown_names}): {text}"]
        echo(shown(lines, zone, columns), err=not ok, nl=False)


def echo_means(sentences: Iterable[str], zone: ZoneInfo, now: datetime) -> None:
    """Print what follows from an instruction that is given at `now` (aware), with moments in `zone`.

    On a terminal, the command at the end of a sentence has a line of its own, so that it can be copied.
    """
    from reconciler.report.text import row, shown

    columns, lines = width(), list[str]()
    # A moment that was asked for as 4h is in 4h, not in 3h59m.
    given = now.replace(microsecond=0)
    for sentence in sentences:
        text, command, arguments = sentence.partition(": reconciler ")
        apart = [f"{text}:", row("do", f"reconciler {arguments}")] if command and columns is not None else []
        lines += [with_time_left(line, given) for line in apart or [sentence]]
    echo(shown(lines, zone, columns), nl=False)


def arguments_for(names: Iterable[str], selector: LabelSelector | None = None, scope: str = "") -> str:
    """Return the arguments with which a command means the same nodes: names, a selector, or `--all`.

    `scope` is that of an instruction to many nodes.
    """
    if selector is not None:
        return f"--selector {quote(str(selector))}"
    return " ".join(dict.fromkeys(names)) or f"--{scope}"


def words_for(names: Collection[str], scope: str = "") -> str:
    """Return in words which nodes these arguments mean: `worker-7`, `these nodes`, `any node of pool web`."""
    if scope:
        return "any node" if scope == ALL else f"any node of {scope}"
    return next(iter(names)) if len(set(names)) == 1 else "these nodes"


class ByHand:
    """The cluster for a command of a person.

    It needs no lock: a write changes only a node on which nobody has changed what it depends on.
    """

    def __init__(self, connection: Connection, target: Target) -> None:
        self.connection, self.target = connection, target
        self.cluster = Cluster(connection, guard=lambda: None, namespace=target.namespace)

    def now(self) -> datetime:
        """Return the time of the API server (aware)."""
        return ServerClock(self.connection).now()

    @cached_property
    def who(self) -> str:
        """Who runs the command, see `author`."""
        return author(self.connection)

    def nodes(self, prefix: str) -> dict[str, Node]:
        """Return all nodes by name, with the keys of this prefix and the names of all keys."""
        return {node.name: node for node in self.cluster.nodes(read_by_hand(prefix))}


def read_by_hand(prefix: str) -> Wanted:
    """Return which parts of nodes commands read: the keys of this prefix, and the names of all keys."""
    return Wanted(frozenset(), prefix, annotations=POOL_ANNOTATIONS, labels=None, names=names_of_signs())


@contextmanager
def by_hand(target: Target) -> Iterator[ByHand]:
    """Connect to the API server, and close the connection at the end."""
    with connected(target) as connection:
        yield ByHand(connection, target)


def check_prefix(nodes: Iterable[Node], policy: SettingsInUse) -> None:
    """Raise SettingsError if a reconciler with another prefix is on these nodes, and none with this one.

    It reads nothing that is written with these settings.
    """
    prefix = policy.settings.keys.prefix
    for node in nodes:
        others = other_prefixes(node, prefix)
        if others and not own_keys(node, prefix):
            text = f"{node.name} has keys of {others[0]}; a reconciler with this keys.prefix reads nothing"
            raise SettingsError((policy.defaults, f"{text} that is said with the default settings"))


def why_not(error: ClusterError) -> str:
    """Return why the API server did not do what a person has asked for, and what helps."""
    if isinstance(error, Conflict):
        return f"{error}; run the command again"
    if error.needs:
        return f"needs {error.needs}; ask an administrator of the cluster (docs/instructions.md)"
    return str(error)


AGAIN = 2
"""How often a command decides again about a node that others change between its read and its write."""

Decide = Callable[[Node], NodeWrite | None]
"""Says what to write on a node as it is now, None for nothing."""


def write_decided(cluster: Cluster, node: Node, wanted: Wanted, decide: Decide) -> WriteAnswer | None:
    """Write what is decided for the node, None if that is nothing.

    A node that somebody has changed since is read again, with the parts that are wanted, and decided again.
    Raises Conflict if that does not end, or the node was created again, and the other errors of ClusterError.
    """
    tries = 0
    while (write := decide(node)) is not None:
        try:
            return cluster.patch_node(write)
        except Conflict:
            tries += 1
            changed = cluster.node(node.name, wanted)
            if tries > AGAIN or changed.uid != node.uid:
                raise
            node = changed
    return None


def write_nodes(
    cluster: Cluster, nodes: Iterable[Node], wanted: Wanted, decide: Decide
) -> Iterator[tuple[Node, str]]:
    """Write to each node, and yield why it is not written: empty if it is, or has nothing to write.

    Once the API server does not answer, or refuses the credentials, nothing more is tried: each try takes the
    whole time for retries.
    """
    silent = False
    for node in nodes:
        problem = ""
        if silent:
            problem = "not written" if decide(node) is not None else ""
        else:
            try:
                write_decided(cluster, node, wanted, decide)
            except ClusterError as error:
                silent = isinstance(error, Unreachable | Unauthorized)
                problem = f"not written: {why_not(error)}"
        yield node, problem


class EventsByHand:
    """Writes Events on nodes about what a person does, with the reasons that a pass uses.

    Nothing depends on them. After one that can't be written, for example because of a missing permission, a
    warning is printed once, and no other is tried.
    """

    def __init__(self, connection: Connection, zone: tzinfo = UTC) -> None:
        """Use this connection; people read the moments of the messages in `zone`."""
        make = first("by_hand")
        self._events: EventWriter | None = make(connection, zone) if make is not None else None

    def write(self, node: Node, notice: Notice) -> None:
        """Write one Event on the node; it raises nothing for an Event that can't be written."""
        self._try(lambda events: events.send(Notification(node.name, node.uid, notice)))

    def write_about_all(self, namespace: str, notice: Notice) -> None:
        """Write one Event about many nodes on the ledger of this namespace; it raises nothing, too."""
        self._try(lambda events: events.send_about_config_map(namespace, LEDGER, notice))

    def _try(self, send: Callable[[EventWriter], None]) -> None:
        if self._events is None:
            return
        try:
            send(self._events)
        except ClusterError as error:
            self._events = None
            because = error.because
            echo(f"warning: no Events are written ({because}); everything else goes on", err=True)


def prefix_in_use(given: str | None, connection: Connection, namespace: str) -> str:
    """Return the prefix that a person has given, or that of the settings that are installed in the cluster.

    If there are none, or they may not be read, it is the default one, and a first line on stderr says so. If
    they can't be used, it is that of the last good ones, which is said there as well; without these, that
    raises SettingsError. Raises the errors of ClusterError.
    """
    if given is not None:
        return given
    found = read_installed(connection, namespace)
    if isinstance(found, str):
        echo(f"default prefix {DEFAULT_PREFIX}: {found}; pass --prefix", err=True)
        return DEFAULT_PREFIX
    if b"prefix" not in found.content:
        return DEFAULT_PREFIX
    # To load settings takes half a second.
    from reconciler.settings.load import parse_content

    try:
        return parse_content(found.content, str(found), None, VariablesAsWritten(os.environ)).keys.prefix
    except SettingsError as error:
        from jobs.runtime.settings_source import instead_of_refused

        try:
            used = instead_of_refused(connection, namespace, None, found, error)
        except SettingsError as neither:
            raise SettingsError(
                (*neither.mistakes, "or name the prefix of the keys with --prefix")
            ) from error
        echo(used.instead, err=True)
        return used.settings.keys.prefix


def objects_of_ours(connection: Connection, namespace: str) -> tuple[str, ...]:
    """Return the objects in our namespace that passes and commands have made, such as `ConfigMap
    node-maintenance-ledger`, also one that can't be read. They stay until the namespace goes.
    """
    maps, leases = core(namespace) / "configmaps", api("coordination.k8s.io", "v1", namespace) / "leases"
    found = []
    of_features = [name for process in processes() for name in process.config_maps]
    for kind, path in (
        *(("ConfigMap", maps / name) for name in (LEDGER, *of_features)),
        ("Lease", leases / LOCK),
    ):
        try:
            objects.get(connection, path, objects.OnlyMetadata)
        except NotFound:
            continue
        except ClusterError as error:
            found.append(f"{kind} {path.segments[-1]} (perhaps: {error})")
            continue
        found.append(f"{kind} {path.segments[-1]}")
    return tuple(found)
