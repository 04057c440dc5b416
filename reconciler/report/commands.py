"""The commands in texts for people, so that an output can show each as what it is: a whole to copy."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

_BEGINS = re.compile(r"`([^`]+)`|(?<!the )\b(?:reconciler|kubectl) (?=[-a-z])")

_VERB = re.compile(r"[a-z]+s")
"""A word with which a sentence goes on behind a command: `ends`, `shows`."""

_NOUNS = frozenset(("cronjobs", "deployments", "events", "leases", "logs", "nodes", "pods"))
"""Words of commands that look like verbs."""

_WITH_VALUE = frozenset(("-n", "-l", "--config", "--context", "--namespace", "--prefix"))
"""Options whose value may look like a verb, too."""

_STOPS = (";", ",", ".", ":", ")", "?")


class Words(Struct, frozen=True):
    """A part of a text. `command` is a command to type, `code` a setting or another name of a program."""

    text: str
    command: bool = False
    code: bool = False


def in_parts(text: str) -> Iterator[Words]:
    """Yield the parts of a text of ours, in order. What stands between backticks loses them."""
    done = 0
    while (begins := _BEGINS.search(text, done)) is not None:
        if begins.start() > done:
            yield Words(text[done : begins.start()])
        if begins[1] is not None:
            command = begins[1].startswith(("reconciler ", "kubectl "))
            yield Words(begins[1], command, not command)
            done = begins.end()
            continue
        done = begins.start()
        words: list[str] = []
        for word in text[done:].split(" "):
            is_value = bool(words) and words[-1] in _WITH_VALUE
            if _VERB.fullmatch(word) and word not in _NOUNS and not is_value:
                break
            words.append(word)
            if word.endswith(_STOPS):
                break
        command_text = " ".join(words)
        while command_text.endswith(_STOPS):
            command_text = command_text[:-1]
        yield Words(command_text, command=True)
        done += len(command_text)
    if done < len(text):
        yield Words(text[done:])


def commands_in(text: str) -> tuple[str, ...]:
    """Return the commands in a text of ours, each once."""
    return tuple(dict.fromkeys(part.text for part in in_parts(text) if part.command))
