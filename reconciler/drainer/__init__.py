"""Carries out drains, with a deterministic core and threads around it."""

from reconciler.drainer.core import DrainCore
from reconciler.drainer.messages import Limits
from reconciler.drainer.shell import Drainer

__all__ = ["DrainCore", "Drainer", "Limits"]
