"""What commands print, for people and for programs, to the terminal or to a file."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jobs.commands import in_own_words
from reconciler.model.errors import OutputError
from reconciler.report import safe
from reconciler.report.document import as_json
from reconciler.report.lines import folded
from reconciler.report.values import Document

if TYPE_CHECKING:
    import yaml


def for_programs(output: str) -> bool:
    """Whether this form of output is read by programs: json or yaml. People read the other forms."""
    return output in ("json", "yaml")


def machine_text(json_text: str, output: str) -> str:
    """Return the JSON text of a document in the form json or yaml, with one line's end."""
    if output == "json":
        return f"{json_text.rstrip()}\n"
    return as_yaml(json_text)


def echo_for_programs(json_text: str, output: str) -> None:
    """Print the JSON text of a document to stdout in the form json or yaml."""
    print_text(safe.lines(machine_text(json_text, output)), nl=False)


_NO_FOLDING = 2**30
"""Columns. A text stays on one line, so that `grep` finds it."""

_NUMERIC = tuple("+-.0123456789")
_TRUTHS = ("y", "Y", "n", "N")


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # Only between double quotes can a character be an escape. Without quotes, some readers take `1e3` for a
    # number and `y` for true.
    numeric = text[:1] in _NUMERIC or text in _TRUTHS
    style = ("'" if numeric else None) if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


@cache
def _dumpers() -> tuple[Any, Any]:
    """Return the writers in C, if PyYAML has them, and in Python.

    They are our own, because what is set on PyYAML's counts for every user of it. Few people want YAML, and
    its import takes long.
    """
    import yaml

    fast, plain = getattr(yaml, "CSafeDumper", yaml.SafeDumper), yaml.SafeDumper
    dumpers: tuple[Any, Any] = type("Fast", (fast,), {}), type("Plain", (plain,), {})
    for dumper in dumpers:
        dumper.add_representer(str, _text)
    return dumpers


def as_yaml(json_text: str) -> str:
    """Return the document of a JSON text as YAML, with its keys in order and one line's end."""
    document = json.loads(json_text)
    fast, plain = _dumpers()
    try:
        written = _dumped(document, fast)
    except UnicodeEncodeError:
        # Half of a surrogate pair: the library in C takes UTF-8 only.
        written = _dumped(document, plain)
    return "\n".join(map(_escaped, written.split("\n")))


def _dumped(document: Any, dumper: Any) -> str:
    import yaml

    text = yaml.dump(document, Dumper=dumper, sort_keys=False, allow_unicode=True, width=_NO_FOLDING)
    return str(text)


def _escaped(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in line)


AsText = Callable[[int | None], str]
"""Makes the text of a document with so many columns (None: any number)."""


def in_form(document: Document, output: str, text: AsText, columns: int | None) -> str:
    """Return the document as JSON or YAML, or as text with so many columns (None: any number)."""
    return machine_text(as_json(document), output) if for_programs(output) else text(columns)


def echo_form(text: str, output: str) -> None:
    """Print to stdout what is in this form; what programs read stays as it is."""
    if for_programs(output):
        print_text(safe.lines(text), nl=False)
    else:
        echo(text, nl=False)


def echo_document(document: Document, output: str, text: AsText) -> None:
    """Print the document to stdout as JSON or YAML, or as text with the columns of the terminal."""
    echo_form(in_form(document, output, text, width(output)), output)


def check_output(path: Path) -> None:
    """Raise OutputError if the folder of the file does not exist, before anything else is done."""
    folder = path.resolve().parent
    if not folder.is_dir():
        raise OutputError(f"{path}: the folder {folder} does not exist; create it with: mkdir -p {folder}")


def write_output(path: Path, text: str) -> None:
    """Write the text (UTF-8) to the file; raises OutputError.

    A reader sees the file before or after, never a part: another file in the same folder takes its place. A
    pipe or a device is written as it is.
    """
    check_output(path)
    try:
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            path.write_text(text, encoding="utf-8")
            return
        # A link stays a link: what it leads to is written.
        target = path.resolve()
        fresh = target.with_name(f".{target.name[:200]}.{os.getpid()}.tmp")
        try:
            fresh.write_text(text, encoding="utf-8")
            if target.exists():
                fresh.chmod(stat.S_IMODE(target.stat().st_mode))
            fresh.replace(target)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: can't be written: {error.strerror or error}") from error


def width(output: str = "text", *, err: bool = False) -> int | None:
    """Return the number of columns to fold lines at on stdout, or on stderr.

    None if that is no terminal, or `output` is wide.
    """
    stream = sys.stderr if err else sys.stdout
    return shutil.get_terminal_size().columns if stream.isatty() and output != "wide" else None


def echo_folded(text: str, *, err: bool = False) -> None:
    """Print lines to stdout, or to stderr; folded at the width of a terminal, else whole."""
    columns = width(err=err)
    for line in safe.lines(in_own_words(text)).removesuffix("\n").split("\n"):
        print_text("\n".join(folded(line, columns)), err=err)


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print the text to stdout, or to stderr; control characters become visible escapes.

    Commands of the program stand in it as the person who reads it types them.
    """
    print_text(safe.lines(in_own_words(text)), err=err, nl=nl)


def print_text(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print the text as it is, to stdout or to stderr; OutputError if that can't be written.

    A reader that has gone, such as `head`, is no such error.
    """
    try:
        click.echo(text, err=err, nl=nl)
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        # What is left in the buffer would fail again when the process ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, (sys.stderr if err else sys.stdout).fileno())
        os.close(nowhere)
        where = "stderr" if err else "stdout"
        raise OutputError(f"{where} can't be written: {error.strerror or error}") from error
