"""Lets others show what is known of readiness."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from jobs.runtime.process import Process

if TYPE_CHECKING:
    from jobs.runtime.environment import Target
    from reconciler.features.readiness.live import LiveReadiness
    from reconciler.kubernetes.connection import Connection
    from reconciler.model.findings import KnownFindings
    from reconciler.settings.schema import Settings


def _readiness(target: Target, connection: Connection | None) -> Callable[[Settings], KnownFindings]:
    live: LiveReadiness | None = None

    def known(settings: Settings) -> KnownFindings:
        # A process that nobody asks for its page does not load what reads it.
        from reconciler.features.readiness.live import LiveReadiness, for_page, read_apart, read_readiness

        nonlocal live
        if connection is not None:
            return for_page(partial(read_readiness, connection, target, settings))
        live = live or LiveReadiness(partial(read_apart, target))
        return live.known(settings)

    return known


PROCESS = Process(findings=_readiness)
