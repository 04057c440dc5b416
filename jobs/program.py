"""What a person calls this program: `reconciler`, or `kubectl maintenance` as a plugin of kubectl."""

from __future__ import annotations

import re
import sys

from jobs.commands import COMMANDS

OWN_NAME = "reconciler"
PLUGIN = "kubectl-maintenance"
"""The name of the file that kubectl starts for `kubectl maintenance`."""

COMPLETER = "kubectl_complete-maintenance"
"""The name of the file that kubectl starts to complete what is typed after `kubectl maintenance`."""


def called() -> str:
    """Return the name by which this process was started."""
    return "kubectl maintenance" if _file() in (PLUGIN, COMPLETER) else OWN_NAME


def is_completer() -> bool:
    """Whether kubectl started this process to complete a line."""
    return _file() == COMPLETER


def _file() -> str:
    return re.split(r"[/\\]", sys.argv[0])[-1].removesuffix(".exe") if sys.argv else ""


def in_own_words(text: str) -> str:
    """Return the text with the commands of the program as the person who reads it types them."""
    name = called()
    if name == OWN_NAME:
        return text
    # "the reconciler" is the program that runs in the cluster, whatever this one is called.
    typed = rf"(?<!the )(?<![\w-]){OWN_NAME}(?=\s+(?:{'|'.join(COMMANDS)})\b)"
    return re.sub(typed, name, text)
