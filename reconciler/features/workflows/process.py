"""Asks others for checks of workflows, counts the pods that workflows move, and shows workflows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from jobs.runtime.process import Observer, Observers, PassPorts, Ports, Process, Surroundings
from reconciler.features.workflows.metrics import FAMILIES, Failures

if TYPE_CHECKING:
    from reconciler.settings.schema import Settings


def _observer(around: Surroundings, _: Observer) -> Observer | None:
    failures = Failures()
    if around.command != "serve" or around.connection is None:
        return failures
    from reconciler.features.workflows.node_info import NodeInfo
    from reconciler.features.workflows.shuffle_counter import ShuffleCounter, Shuffles
    from reconciler.kubernetes.workloads import Workloads

    shuffles = Shuffles(ShuffleCounter(Workloads(around.connection)))
    return Observers(shuffles, failures, *((NodeInfo(),) if around.listens else ()))


def _ports(given: Ports) -> Callable[[Settings], PassPorts]:
    @cache
    def made() -> PassPorts:
        # It keeps answers, also for other settings.
        from reconciler.features.workflows.client import Client
        from reconciler.features.workflows.services import SERVICES

        return PassPorts(clients={SERVICES.name: Client(given.connection, given.guard)})

    from reconciler.features.workflows.settings import PROFILES

    return lambda settings: made() if PROFILES.of(settings).on else PassPorts()


PROCESS = Process(observer=_observer, ports=_ports, families=FAMILIES)
