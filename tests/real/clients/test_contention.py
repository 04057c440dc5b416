"""Objects that others change between our read and our write, in what the write does not depend on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from reconciler.http.retrying import Guard
from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.connection import LEDGER, Connection
from reconciler.kubernetes.eviction import Evictions
from reconciler.kubernetes.ledger import change_holds, read_holds
from reconciler.model.errors import Rejected
from reconciler.model.instructions import PersonHold, Word
from reconciler.model.node import Condition, Taint
from reconciler.model.snapshot import Ledger
from reconciler.model.writes import ConditionsWrite, LabelsWrite, ListChanges, TaintWrite, node_write
from tests.real.clients.conftest import PREFIX, WANTED
from tests.real.clients.test_eviction import start, surging
from tests.support.controlplane.api import Object
from tests.support.controlplane.fill import Pool, fill
from tests.support.controlplane.server import ControlPlane

NAME = Pool("np").node_name(0)
OURS = "node-maintenance"
NOW = datetime(2026, 11, 21, 3, 4, 5, tzinfo=UTC)

Place = tuple[str, str, str | None]
Write = Callable[[Connection, Guard], object]

NODE: Place = ("nodes", NAME, None)
TAINT = Taint(f"{PREFIX}/maintenance", effect="PreferNoSchedule")


def uid(connection: Connection) -> str:
    return Cluster(connection).node(NAME, WANTED).uid


def lists(connection: Connection, guard: Guard) -> object:
    node = Cluster(connection).node(NAME, WANTED)
    changes = ListChanges(("example.com/keep",), (), (TAINT,), ())
    return Cluster(connection, guard=guard).patch_node(node_write(node, PREFIX, lists=changes))


def hold(connection: Connection, guard: Guard) -> object:
    # A person needs no lock.
    guard()
    return change_holds(
        connection, OURS, lambda before: (*before, PersonHold(Word("alice@laptop", NOW, scope="all")))
    )


def restart(connection: Connection, guard: Guard) -> object:
    evictions = Evictions(connection, guard=guard, prefix=PREFIX)
    return evictions.restart(next(iter(evictions.pods())), NOW)


WRITES: dict[str, tuple[Place, Write]] = {
    "lists of a node": (NODE, lists),
    "a taint": (
        NODE,
        lambda c, guard: Cluster(c, guard=guard).patch_taint(TaintWrite(NAME, uid(c), TAINT, wanted=True)),
    ),
    "labels": (
        NODE,
        lambda c, guard: Cluster(c, guard=guard).patch_labels(LabelsWrite(NAME, uid(c), {"a": "b"})),
    ),
    "conditions": (
        NODE,
        lambda c, guard: Cluster(c, guard=guard).patch_conditions(
            ConditionsWrite(NAME, uid(c), (Condition("Ours", "True"),))
        ),
    ),
    "the ledger": (
        ("configmaps", LEDGER, OURS),
        lambda c, guard: Cluster(c, guard=guard).write_ledger(Ledger(NOW)),
    ),
    "a hold of all nodes": (("configmaps", LEDGER, OURS), hold),
    "a restart": (("deployments", "web", "default"), restart),
}


@pytest.mark.parametrize("what", WRITES)
def test_what_a_write_does_not_depend_on_neither_stops_nor_repeats_it(
    cluster: ControlPlane, connection: Connection, evictions: Evictions, what: str
) -> None:
    place, write = WRITES[what]
    if what == "a restart":
        start(cluster, evictions, surging())
    elif place == NODE:
        fill(cluster.kubeconfig, nodes=1)
    else:
        make(cluster, place)
    is_sent_once(cluster, connection, place, write)


def make(cluster: ControlPlane, place: Place) -> None:
    """Create an object without content, and its namespace."""
    resource, name, namespace = place
    cluster.api.create_namespace(str(namespace))
    cluster.api.create(resource, {"metadata": {"name": name, "namespace": namespace}})


def is_sent_once(cluster: ControlPlane, connection: Connection, place: Place, write: Write) -> None:
    """Change the object of a write just before each try of it: there is one try, and both are kept."""
    resource, name, namespace = place
    tries = 0

    def guard() -> None:
        nonlocal tries
        tries += 1
        theirs = {"metadata": {"annotations": {"theirs/count": str(tries)}, "labels": {"theirs": "x"}}}
        cluster.api.patch(resource, name, theirs, namespace)

    before = changed(cluster.api.get(resource, name, namespace))
    write(connection, guard)

    after = cluster.api.get(resource, name, namespace)
    assert tries == 1
    assert after["metadata"]["annotations"]["theirs/count"] == "1"
    assert changed(after) != before


def changed(found: Object) -> Object:
    """What our writes change of an object."""
    meta, status = found["metadata"], found.get("status", {})
    labels = {key: text for key, text in meta.get("labels", {}).items() if key != "theirs"}
    kinds = [one["type"] for one in status.get("conditions", ())]
    return {"spec": found.get("spec"), "data": found.get("data"), "labels": labels, "kinds": kinds}


def test_two_who_change_the_ledger_at_once_both_get_what_they_wrote(
    cluster: ControlPlane, connection: Connection
) -> None:
    """A person holds all nodes between the read and the write of a pass, and another pool is held too."""
    cluster.api.create_namespace(OURS)
    pool, everything = (PersonHold(Word("alice@laptop", NOW, scope=scope)) for scope in ("pool np", "all"))
    change_holds(connection, OURS, lambda before: (*before, pool))
    interrupted = False

    def change(before: tuple[PersonHold, ...]) -> tuple[PersonHold, ...]:
        nonlocal interrupted
        if not interrupted:
            interrupted = True
            change_holds(connection, OURS, lambda found: (*found, everything))
            Cluster(connection, guard=lambda: None).write_ledger(Ledger(NOW))
        return tuple(one for one in before if one != pool)

    change_holds(connection, OURS, change)

    assert read_holds(connection, OURS) == (everything,)
    assert Cluster(connection).ledger().last_start == NOW


def test_a_deployment_that_is_scaled_meanwhile_is_not_restarted(
    cluster: ControlPlane, connection: Connection, evictions: Evictions
) -> None:
    pod = start(cluster, evictions, surging())

    def guard() -> None:
        cluster.api.patch("deployments", "web", {"spec": {"replicas": 2}}, "default")

    with pytest.raises(Rejected, match="it has 2 replicas"):
        Evictions(connection, guard=guard, prefix=PREFIX).restart(pod, NOW)
