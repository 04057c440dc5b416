"""How shells and kubectl ask what can be typed next."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

from jobs.commands import OWN_NAME, called, in_own_words

VARIABLE = "_RECONCILER_COMPLETE"
"""The variable of the environment by which a shell asks: `bash_complete` and so on."""

FOR_KUBECTL = '#!/bin/sh\nexec kubectl maintenance __complete "$@"\n'
"""The file `kubectl_complete-maintenance`, which kubectl looks for in PATH."""

_SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
SHELLS = tuple(_SHELLS)

# kubectl reads them in the last line of the answer. Each is a bit of cobra's ShellCompDirective.
_DEFAULT, _NO_FILES, _FOLDERS = 0, 4, 16


def script(shell: str) -> str:
    """Return the script that adds completion to a shell."""
    return _SHELLS[shell](click.Group(), {}, OWN_NAME, VARIABLE).source() + "\n"


def answer_shell(root: click.Group, instruction: str) -> str:
    """Return what the script of a shell reads for this instruction; empty for an unknown one."""
    shell, _, what = instruction.partition("_")
    if what != "complete" or shell not in _SHELLS:
        return ""
    asked = _SHELLS[shell](root, {}, OWN_NAME, VARIABLE)
    words, incomplete = asked.get_completion_args()
    # Bash takes `--output=json` for three words.
    before = ["", *words]
    whole = [word for last, word in zip(before, words, strict=False) if word != "=" or last[:2] != "--"]
    items = completions(root, whole, incomplete)
    return "".join(f"{asked.format_completion(item)}\n" for item in items)


def answer_kubectl(root: click.Group, arguments: Sequence[str]) -> str:
    """Return what kubectl reads: a line for each candidate, and a number that says what the shell may add.

    The last of the arguments is the word that is not complete.
    """
    *words, incomplete = arguments or [""]
    items = completions(root, words, incomplete)
    kinds = {item.type for item in items}
    directive = _DEFAULT if "file" in kinds else _FOLDERS if "dir" in kinds else _NO_FILES
    lines = []
    for item in items:
        if item.type == "plain":
            does = f"\t{in_own_words(' '.join(item.help.split()))}" if item.help else ""
            lines.append(f"{item.value}{does}")
    return "\n".join([*lines, f":{directive}"]) + "\n"


def completions(root: click.Group, words: Sequence[str], incomplete: str) -> list[CompletionItem[str]]:
    """Return what the last word can become, after these words; nothing if that can't be found out."""
    try:
        with _silence():
            return ShellComplete(root, {}, called(), "").get_completions([*words], incomplete)
    except Exception:  # noqa: BLE001 - an error would stand in the line that the person types
        return []


@contextmanager
def _silence() -> Iterator[None]:
    """Keep credential plugins of the kubeconfig from the terminal: they would write there, or ask."""
    kept = [(number, os.dup(number)) for number in (0, 2)]
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        for number, _ in kept:
            os.dup2(nothing, number)
        yield
    finally:
        os.close(nothing)
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)
