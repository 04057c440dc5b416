"""The handlers of our logs and of the root's. One that a test leaves writes to a stream that closes soon."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

LOGGERS = ("", "reconciler", "jobs")


class Handlers(NamedTuple):
    """The handlers of one logger at one moment."""

    logger: logging.Logger
    handlers: tuple[logging.Handler, ...]


def current() -> list[Handlers]:
    """Return the handlers of each logger now."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    return [Handlers(logger, tuple(logger.handlers)) for logger in loggers]


def remove_new(before: list[Handlers]) -> list[str]:
    """Remove the handlers with a stream that have come since then; return what they are, with their loggers.

    Others are left alone: a thread that loads credentials has one on the root for a moment.
    """
    removed = []
    for logger, handlers in before:
        for handler in set(logger.handlers).difference(handlers):
            if isinstance(handler, logging.StreamHandler):
                logger.removeHandler(handler)
                removed.append(f"{handler!r} on {logger!r}")
    return removed


@contextmanager
def restored() -> Iterator[None]:
    """Give the root its handlers and its level back at the end.

    `logging.basicConfig(force=True)` does not do this. It adds a handler on the `stderr` of that moment.
    """
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
