"""What a person calls this program: `reconciler`, or `kubectl maintenance` as a plugin of kubectl."""

from __future__ import annotations

import re
import sys

OWN_NAME = "reconciler"
PLUGIN = "kubectl-maintenance"
"""The name of the file that kubectl starts for `kubectl maintenance`."""


def called() -> str:
    """Return the name by which this process was started."""
    file = re.split(r"[/\\]", sys.argv[0])[-1] if sys.argv else ""
    return "kubectl maintenance" if file.removesuffix(".exe") == PLUGIN else OWN_NAME


def in_own_words(text: str) -> str:
    """Return the text with the commands of the program as the person who reads it types them."""
    name = called()
    if name == OWN_NAME:
        return text
    from jobs.cli import COMMANDS

    # "the reconciler" is the program that runs in the cluster, whatever this one is called.
    typed = rf"(?<!the )(?<![\w-]){OWN_NAME}(?=\s+(?:{'|'.join(COMMANDS)})\b)"
    return re.sub(typed, name, text)
