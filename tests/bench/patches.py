"""The time of one patch of a node: a JSON Patch with tests, beside a strategic patch of the read version.

    python -m tests.bench.patches [--rounds N]

The node is one of AKS with 50 images, on a real API server. The patches take turns. The last row is the JSON
Patch while other clients change the node as fast as the API server takes it; a patch of a version then ends
with a conflict, so its row says how many of them did.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial

from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.connection import NODES, PROTOBUF, STRATEGIC_PATCH, Connection, Request
from reconciler.kubernetes.wire import protobuf
from reconciler.kubernetes.wire.formats import node_format
from reconciler.model.errors import Conflict
from reconciler.model.node import Node, Wanted
from reconciler.model.writes import NodeWrite, node_write
from tests.support.beside import meanwhile
from tests.support.controlplane.fill import Pool, fill
from tests.support.controlplane.server import ControlPlane

_PREFIX = "node-maintenance.dev"
_WANTED = Wanted(frozenset(), _PREFIX)
_NAME = Pool("np").node_name(0)
_IMAGES = [
    {
        "names": [f"registry.example.com/team/image-{number}@sha256:{number:064}", f"image-{number}:v1"],
        "sizeBytes": 123_456_789,
    }
    for number in range(50)
]


def main() -> None:
    """Run the rounds and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    chosen = parser.parse_args()
    with ControlPlane() as server, closing(Connection(str(server.kubeconfig))) as connection:
        fill(server.kubeconfig, nodes=1)
        server.api.patch("nodes", _NAME, {"status": {"images": _IMAGES}}, subresource="status")
        print("| patch | milliseconds (median, least–most) | conflicts |\n|---|---|---|")
        _print(_measured(connection, chosen.rounds))
        with _changing(server):
            _print(_measured(connection, chosen.rounds), " beside others")


def _print(took: dict[str, list[float | None]], where: str = "") -> None:
    for name, all_of in took.items():
        seconds = sorted(1000 * one for one in all_of if one is not None)
        if seconds:
            middle = seconds[len(seconds) // 2]
            text = f"{middle:.1f} ({seconds[0]:.1f}–{seconds[-1]:.1f})"
        print(f"| {name}{where} | {text if seconds else '–'} | {len(all_of) - len(seconds)} |")


def _measured(connection: Connection, rounds: int) -> dict[str, list[float | None]]:
    """Return the seconds of each patch, None for one that ended with a conflict."""
    ours = Cluster(connection, guard=lambda: None)
    patches: dict[str, Callable[[Node, NodeWrite], object]] = {
        "strategic, with the version": lambda node, write: _read(connection.send(_strategic(node, write))),
        "JSON Patch, with tests": lambda _, write: ours.patch_node(write),
    }
    took: dict[str, list[float | None]] = defaultdict(list)
    for number in range(rounds):
        for name, send in patches.items():
            node = ours.node(_NAME, _WANTED)
            record = f'{{"n": {number}, "text": "{"x" * 2000}"}}'
            write = node_write(
                node,
                _PREFIX,
                unschedulable=not node.unschedulable,
                labels={f"{_PREFIX}/state": f"n{number}"},
                annotations={f"{_PREFIX}/record": record},
            )
            began = time.perf_counter()
            try:
                send(node, write)
            except Conflict:
                took[name].append(None)
            else:
                took[name].append(time.perf_counter() - began)
    return took


def _read(answer: bytes) -> Node:
    """Read the answer as a pass does."""
    return node_format(_WANTED).read(protobuf.unwrapped(answer))


def _strategic(node: Node, write: NodeWrite) -> Request:
    metadata = {"uid": node.uid, "resourceVersion": node.resource_version}
    changes = {"labels": dict(write.labels), "annotations": dict(write.bound_annotations)}
    body = {"metadata": {**metadata, **changes}, "spec": {"unschedulable": write.unschedulable}}
    return Request("PATCH", NODES / node.name, body=body, content_type=STRATEGIC_PATCH, accept=PROTOBUF)


@contextmanager
def _changing(server: ControlPlane) -> Iterator[None]:
    def keep_writing(client: int, ended: threading.Event) -> None:
        count = 0
        while not ended.wait(0.04):
            count += 1
            body = {"metadata": {"annotations": {f"theirs/{client}": str(count)}}}
            server.api.patch("nodes", _NAME, body)

    with meanwhile(*(partial(keep_writing, client) for client in range(2))):
        yield


if __name__ == "__main__":
    main()
