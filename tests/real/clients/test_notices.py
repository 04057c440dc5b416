"""The memory of notices in its ConfigMap, which others change between our read and our write."""

from __future__ import annotations

from reconciler.features.notices.memory import NAME, NoticeMemory
from reconciler.kubernetes.connection import Connection
from tests.real.clients.test_contention import OURS, is_sent_once, make
from tests.support.controlplane.server import ControlPlane


def test_what_the_write_does_not_depend_on_neither_stops_nor_repeats_it(
    cluster: ControlPlane, connection: Connection
) -> None:
    place = ("configmaps", NAME, OURS)
    make(cluster, place)
    is_sent_once(cluster, connection, place, lambda c, guard: NoticeMemory(c, OURS, guard).save("{}"))
