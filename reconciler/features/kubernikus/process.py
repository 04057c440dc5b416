"""Deletes the servers of nodes in OpenStack."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from jobs.runtime.process import Ports, Process

if TYPE_CHECKING:
    from jobs.runtime.machines import MachineClient, Makers
    from reconciler.features.kubernikus.settings import Kubernikus
    from reconciler.settings.schema import Settings

OPENSTACK = "OpenStack"
"""The name of the machine provider."""


def _machines(given: Ports) -> Callable[[Settings], Makers]:
    from reconciler.features.kubernikus.settings import CONTROLLER

    return lambda settings: {OPENSTACK: partial(_client, given, CONTROLLER.of(settings))}


def _client(given: Ports, section: Kubernikus) -> MachineClient:
    from reconciler.features.kubernikus.client import at_place
    from reconciler.kubernetes.cloud_provider import Place

    secret = section.cloud_provider_secret
    named = (secret.namespace, secret.name) if secret is not None else ()
    return at_place(Place(section.credentials_file, *named), given.connection, given.guard)


PROCESS = Process(machines=_machines)
