"""The commands of the core, and what a person calls the program. This file imports none of them.

Each is a `command` in a file of its own, small ones in `small.py` under their names.

A feature or a source names its own commands in the `COMMANDS` of its `__init__.py`; each is in its
`commands.py` under its own name.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType, ModuleType

import click

from reconciler import plugins
from reconciler.plugins import ACT, PLAN, SEE, SET_UP, Command


def _named(face: ModuleType) -> Mapping[str, Command]:
    commands: Mapping[str, Command] = getattr(face, "COMMANDS", {})
    return commands


_OF_THE_CORE: Mapping[str, Command] = MappingProxyType(
    {
        "check-config": Command(
            SET_UP,
            "Print all mistakes in a settings file, or what it means.",
            "check-config FILE",
            "What do these settings do?",
        ),
        "completion": Command(
            SET_UP, "Print what completes commands in bash, zsh, fish or kubectl.", "completion bash"
        ),
        "defer": Command(
            ACT, "Put the drain of nodes off until a moment, or an earlier deadline.", "defer NODE --until 4h"
        ),
        "demo": Command(SET_UP, "Play a day of a simulated AKS cluster in seconds.", "demo"),
        "drain": Command(
            ACT,
            "Cordon and drain nodes by hand, with the flags of kubectl drain.",
            "drain NODE --ignore-daemonsets",
        ),
        "explain": Command(
            SEE,
            "Print what happens to one node or pod, why, and who can change it.",
            "explain NODE",
            "Why is a node not drained?",
        ),
        "hold": Command(
            ACT,
            "Hold nodes: no drain of them begins, not even at a deadline.",
            "hold --all --now",
            "Stop all drains now:",
        ),
        "release": Command(
            ACT, "Uncordon nodes, and remove the reconciler's labels and annotations.", "release NODE"
        ),
        "report": Command(
            SEE, "Print what a pass would do and why. It only reads the cluster.", "report --only held"
        ),
        "resume": Command(ACT, "End the hold and the deferral of nodes, whoever gave them.", "resume --all"),
        "schema": Command(SET_UP, "Print the JSON Schema of the settings file, for editors.", "schema"),
        "serve": Command(SET_UP, "Run passes until stopped, for a Deployment.", "serve --config FILE"),
        "sweep": Command(SET_UP, "Run one pass over all nodes, for a CronJob.", "sweep --config FILE"),
        "windows": Command(PLAN, "Print whether a drain may start at a moment, and what is next.", "windows"),
    }
)
"""Each with its words in `reconciler --help`; `command` in check_config.py is `check-config`, and so on."""

_SYNONYMS = {
    "why": "explain NODE",
    "pods": "plan -n NAMESPACE",
    "tonight": "plan",
    "describe": "explain NODE",
    "show": "explain NODE",
    "status": "report",
    "get": "report",
    "list": "report",
    "ls": "report",
    "nodes": "report",
    "top": "report",
    "uncordon": "release NODE",
    "undo": "release NODE",
    "uninstall": "release --all",
    "cordon": "drain NODE",
    "evict": "drain NODE",
    "version": "--version",
    "check": "check-config FILE",
    "validate": "check-config FILE",
    "lint": "check-config FILE",
    "run": "serve --config FILE",
    "pause": "hold --all --now",
    "stop": "hold --all --now",
    "disable": "hold --all --now",
    "freeze": "hold --all",
    "block": "hold --all",
    "unhold": "resume --all",
    "unpause": "resume --all",
    "unfreeze": "resume --all",
    "continue": "resume --all",
    "enable": "resume --all",
    "delay": "defer NODE --until 4h",
    "snooze": "defer NODE --until 4h",
    "postpone": "defer NODE --until 4h",
}

SMALL = ("completion", "schema")
"""Those in `small.py`."""

plugins.by_name(
    "command",
    [
        ("jobs/commands/__init__.py", [*_OF_THE_CORE]),
        *((plugins.file_of(face), [*_named(face)]) for face in plugins.faces()),
    ],
    str,
)

_OF_PLUGINS = {name: (face.__name__, said) for face in plugins.faces() for name, said in _named(face).items()}

COMMANDS: Mapping[str, Command] = MappingProxyType(
    {**_OF_THE_CORE, **{name: said for name, (_, said) in _OF_PLUGINS.items()}}
)
"""Every command with what `reconciler --help` says of it."""

SYNONYMS: Mapping[str, str] = MappingProxyType(
    {
        name: command
        for synonyms in (_SYNONYMS, *(getattr(face, "SYNONYMS", {}) for face in plugins.faces()))
        for name, command in synonyms.items()
        if name not in COMMANDS
    }
)
"""Names that people try, with the command that does what they mean."""


def load(name: str) -> click.Command:
    """Import the file of a command of the list, and return the command."""
    own = name.replace("-", "_")
    if name in _OF_PLUGINS:
        command: click.Command = getattr(plugins.commands_of(_OF_PLUGINS[name][0]), own)
    elif name in SMALL:
        command = getattr(import_module(f"{__name__}.small"), own)
    else:
        command = import_module(f"{__name__}.{own}").command
    command.epilog = f"Example: `{OWN_NAME} {COMMANDS[name].example}`"
    return command


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
