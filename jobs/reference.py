"""Writes docs/commands.md from the options of the commands, so that each is described in one place.

All that follows the marker is generated: `python -m jobs.reference docs/commands.md` updates it.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from jobs.cli import commands
from jobs.commands import COMMANDS
from reconciler.settings.reference import regenerated

MARKER = "<!-- Generated from jobs/commands: run `nox -s docs`, do not edit below this line. -->"


def update(page: str) -> str:
    """Return the page with its generated part replaced. Raises ValueError if it has no marker line."""
    return regenerated(page, MARKER, "\n\n".join(_blocks()))


def _blocks() -> Iterator[str]:
    context = click.Context(commands)
    every = {name: command for name in COMMANDS if (command := commands.get_command(context, name))}
    rows = {name: dict(_rows(command)) for name, command in sorted(every.items())}
    times = Counter(row for options in rows.values() for row in options.values())
    shared = {row: name for options in rows.values() for name, row in options.items() if times[row] > 1}
    yield "## Each command"
    for name, options in rows.items():
        yield f"### `reconciler {name}`"
        yield _text(every[name].help or "")
        yield every[name].epilog or ""
        own = [row for row in options.values() if row not in shared]
        if own:
            yield "\n".join(own)
    yield "## Shared options"
    yield "\n".join(sorted(shared, key=lambda row: shared[row]))


def _rows(command: click.Command) -> Iterator[tuple[str, str]]:
    """Yield the long name of each option of a command, with its row."""
    for option in command.params:
        record = option.get_help_record(click.Context(command))
        if isinstance(option, click.Option) and record is not None:
            named, described = record
            if option.name == "output":
                # The page says above which command takes which form.
                named = "-o, --output FORM"
            yield max(option.opts, key=len), f"- `{named}`: {_text(described)}"


def _text(described: str) -> str:
    """Return a help text as Markdown: options as code, and links to pages of docs/."""
    paragraphs = (" ".join(one.split()) for one in inspect.cleandoc(described).split("\n\n"))
    option = r"(`[^`]*`)|(?<![\w-])--[a-z][a-z-]*"
    text = re.sub(option, lambda found: found[1] or f"`{found[0]}`", "\n\n".join(paragraphs))
    return re.sub(r"\bdocs/([a-z]+\.md)(#[\w-]+)?", r"[\1](\1\2)", text)


if __name__ == "__main__":
    written = Path(sys.argv[1])
    written.write_text(update(written.read_text(encoding="utf-8")), encoding="utf-8")
