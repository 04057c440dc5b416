"""Who runs a command by hand."""

from __future__ import annotations

import getpass
import os
import socket


def person() -> str:
    """Return who runs the command, as user@host; a container may have no name for its user."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
