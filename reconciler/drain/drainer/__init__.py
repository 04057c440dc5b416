"""Carries out drains, with a deterministic core and threads around it."""

from reconciler.drain.drainer.core import DrainCore
from reconciler.drain.drainer.messages import Limits
from reconciler.drain.drainer.shell import Drainer

__all__ = ["DrainCore", "Drainer", "Limits"]
