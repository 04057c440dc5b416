"""Who runs a command by hand, and which nodes they name."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Collection, Iterable

from reconciler.calendar.values import near
from reconciler.model.errors import NotFound
from reconciler.model.limits import excerpt, is_object_name


def person() -> str:
    """Return who runs the command, as user@host; a container may have no name for its user."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


_HELPED = 5
"""Names for which a similar one is looked up, which takes long among thousands."""


def check_nodes(names: Iterable[str], known: Collection[str]) -> None:
    """Raise NotFound, with a line for each name that no node has."""
    missing = [name for name in dict.fromkeys(names) if name not in known]
    if missing:
        every = sorted(known)
        lines = [_line(name, every if place < _HELPED else []) for place, name in enumerate(missing)]
        raise NotFound("\n".join(lines), status=404)


def _line(name: str, known: list[str]) -> str:
    shown, similar = (name, near(name, known)) if is_object_name(name) else (excerpt(name), "")
    return f"{shown}: there is no such node{similar}"
