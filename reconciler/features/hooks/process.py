"""Runs the hooks that the settings name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from jobs.runtime.process import Ports, Process

if TYPE_CHECKING:
    from reconciler.settings.schema import Settings


def _ports(given: Ports) -> Callable[[Settings], Mapping[str, Any]]:
    def of(settings: Settings) -> Mapping[str, Any]:
        if not settings.hooks.configured:
            return {}
        from reconciler.features.hooks.runner import SettingsHooks

        return {"hooks": SettingsHooks(given.connection, given.target.namespace, settings, given.guard)}

    return of


PROCESS = Process(ports=_ports)
