"""`reconciler settings`: lists, shows and compares the revisions of the settings, and goes back to one."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from jobs import options
from jobs.runtime.environment import Target, VariablesAsWritten, connected
from jobs.runtime.output import echo, echo_document, echo_folded, for_programs, print_text
from jobs.runtime.settings_source import SettingsSource
from reconciler.features.revisions import KEPT_IN
from reconciler.features.revisions.changes import changed_keys, in_words, unified
from reconciler.features.revisions.client import MANAGER, RevisionStore, write_text
from reconciler.features.revisions.revisions import LARGEST, Kept, Revision
from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.config_maps import HeldSettings, read_installed, read_settings
from reconciler.kubernetes.connection import Connection
from reconciler.model.content import short_hash
from reconciler.model.errors import ClusterError, SettingsError
from reconciler.model.limits import COUNT, count_of
from reconciler.model.moments import to_text
from reconciler.model.node import Wanted
from reconciler.report.effect import Comparison
from reconciler.report.lines import folded
from reconciler.report.safe import line as safe_line
from reconciler.report.safe import lines as safe_lines
from reconciler.settings.coverage import coverage_of, losses, selects_none
from reconciler.settings.load import content_of, parse_content
from reconciler.settings.schema import Settings

PRESENT = "present"
"""The name of the present text in a comparison."""


_TAKES = {"list": 0, "show": 1, "diff": 2, "rollback": 1}
"""How many revisions can be named."""


@click.command("settings")
@click.argument(
    "action",
    metavar="[show|diff|rollback]",
    default="list",
    type=click.Choice(["list", "show", "diff", "rollback"]),
)
@click.argument("numbers", metavar="[REVISION]…", nargs=-1, type=click.IntRange(1, COUNT))
@click.option("--yes", is_flag=True, help="With rollback: write without a question.")
@options.optional_config
@options.output
@options.cluster
def settings(
    action: str,
    numbers: tuple[int, ...],
    yes: bool,
    config: SettingsSource | None,
    output: str,
    target: Target,
) -> int:
    """List, show, compare or restore revisions of the settings.

    A revision is a text of the settings that a pass of `serve` has used (docs/revisions.md). `show` prints
    the newest one, or REVISION. `diff` compares the last two, REVISION with the present text, or two
    revisions. A present text that no pass has used yet, or that is refused, is compared with the newest one.

    `rollback` writes the text of REVISION, or of the one before the present text, into the ConfigMap with the
    settings. It first shows what changes: the lines, and how many managed nodes, cases and misses there are
    before and after.
    """
    most = _TAKES[action]
    if len(numbers) > most:
        raise click.UsageError(f"{action} takes {count_of(most, 'revision')} at most")
    if action == "rollback":
        if not yes and (for_programs(output) or not sys.stdin.isatty()):
            raise click.UsageError("nobody can be asked here whether to write: give --yes")
        with connected(target) as connection:
            return _rollback(_read(connection, target, config), numbers, yes, output, connection, target)
    if yes:
        raise click.UsageError("--yes is for rollback")
    with connected(target) as connection:
        seen = _read(connection, target, config)
    if action == "list":
        listed = _listed(seen)
        echo_document(listed, output, partial(_list_text, seen, listed["revisions"]))
    elif action == "show":
        revision = seen.revision(numbers[0] if numbers else None)
        text = _content(revision).decode("utf-8", "replace")
        if for_programs(output):
            (value,) = (each for each in _values(seen) if each["revision"] == revision.number)
            echo_document({**value, "text": text}, output, lambda _: text)
        else:
            # A file gets the text as it was written.
            print_text(safe_lines(text) if sys.stdout.isatty() else text, nl=False)
    else:
        first, second = _compared(seen, numbers)
        changes = changed_keys(first.content, second.content)
        lines = unified(first.content, second.content, (first.name, second.name))
        document = {"from": first.name, "to": second.name, "changes": list(changes), "diff": list(lines)}
        nothing = f"{first.name} and {second.name} are the same text"
        echo_document(document, output, lambda _: "".join(f"{line}\n" for line in lines or [nothing]))
    return 0


_WRITES_AGAIN = re.compile(r"argo|flux|helm|kustomize-controller|gitops", re.IGNORECASE)
"""Field managers that write the text of their own source again."""


def _rollback(
    seen: Seen, numbers: tuple[int, ...], yes: bool, output: str, connection: Connection, target: Target
) -> int:
    """Write the text of an earlier revision, in one request; return the exit code."""
    held, present = seen.held, seen.present
    # Whoever repeats the command, or comes second, wants what is there, and not the text before it.
    again = held is not None and held.manager == MANAGER and not numbers and not seen.mistakes
    revision = present if again and present is not None else _goal(seen, numbers)
    named, content = f"revision {revision.number}", _content(revision)
    if held is None:
        why = (
            f"{seen.source or seen.absent}: rollback writes the ConfigMap with the settings; name it with "
            "--config configmap/NAMESPACE/NAME, or write a file yourself: "
        )
        raise SettingsError((f"{why}reconciler settings show {revision.number} > FILE",))
    try:
        after = _parsed(content, named)
    except SettingsError as error:
        raise SettingsError(
            (*error.mistakes, f"{named} can't be used any more: nothing is written")
        ) from error
    lines = unified(seen.content or b"", content, (PRESENT, named))
    document: dict[str, Any] = {
        "revision": revision.number,
        "source": seen.source,
        "changes": list(changed_keys(seen.content or b"", content)),
        "diff": list(lines),
        "managed": None,
        "cases": None,
        "misses": None,
        "unguarded": None,
        "warnings": [],
        "written": False,
    }
    if content == seen.content:
        nothing = f"the present text is that of {named}: there is nothing to write"
        if again:
            nothing = (
                f"a rollback has written the present text, that of {named}: there is nothing to write. To go "
                "to another text, name its revision"
            )
        echo_document(document, output, partial(_folded, nothing))
        return 0
    comparison, document["warnings"] = _consequences(seen, after, connection, target)
    document |= comparison.values if comparison is not None else {}
    if held.manager and _WRITES_AGAIN.search(held.manager):
        document["warnings"].append(
            f"{held.manager} wrote these settings, and will write its own text again: change that as well"
        )
    if not for_programs(output):
        echo("".join(f"{line}\n" for line in lines), nl=False)
        for line in comparison.lines if comparison is not None else ():
            echo_folded(line)
        for warning in document["warnings"]:
            echo_folded(f"warning: {warning}")
    if not yes:
        click.confirm(f"Write the text of {named} into {held.name}?", abort=True)
    write_text(connection, held, content)
    document["written"] = True
    written = f"{held} has the text of {named}; a Pod sees it within about a minute"
    echo_document(document, output, partial(_folded, written))
    return 0


def _folded(text: str, columns: int | None) -> str:
    return "".join(f"{part}\n" for part in folded(text, columns))


def _goal(seen: Seen, numbers: tuple[int, ...]) -> Revision:
    """Return the revision to go back to."""
    newest = seen.revision(numbers[0] if numbers else None)
    present = seen.present
    if numbers or present is None:
        return newest
    earlier = [
        each for each in seen.kept.revisions if each.number < present.number and each.sha256 != present.sha256
    ]
    if not earlier:
        raise SettingsError(("there is no revision before the present text: name one, or change the text",))
    return earlier[-1]


def _consequences(
    seen: Seen, after: Settings, connection: Connection, target: Target
) -> tuple[Comparison | None, list[str]]:
    """Return what the settings do in the place of those in force, None if that is not known, and warnings:
    what they guard no more, and why it is not known.
    """
    from jobs.runtime.outside import compared

    in_force = seen.content
    if seen.mistakes:
        newest = seen.kept.newest
        in_force = _content(newest) if newest is not None else None
    before: Settings | None = None
    with suppress(SettingsError):
        before = _parsed(in_force, "the settings in force") if in_force is not None else None
    wanted = Wanted(after.condition_types(), after.keys.prefix, labels=None)
    nodes = [(node.labels, 1) for node in Cluster(connection, namespace=target.namespace).nodes(wanted)]
    covers = coverage_of(after, nodes)
    covered = coverage_of(before, nodes) if before is not None else None
    lost = [str(each) for each in (selects_none(covers) if covered is None else losses(covered, covers))]
    try:
        comparison = compared(connection, target, before, after)
    except ClusterError as error:
        return None, [*lost, f"cases and misses are not compared: {error.because}"]
    return comparison, lost


class Text(Struct, frozen=True):
    """A text of the settings, and its name in a comparison."""

    name: str
    content: bytes


class Seen(Struct, frozen=True):
    """The revisions, and the present text of the settings.

    `source` is where that is, `held` what holds it if it is in a ConfigMap, and `content` the text; None if
    there is none, or it can't be read: `absent` says why. `mistakes` are those for which it is refused.
    """

    kept: Kept
    source: str
    held: HeldSettings | None = None
    content: bytes | None = None
    absent: str = ""
    mistakes: tuple[str, ...] = ()

    @property
    def present(self) -> Revision | None:
        """The newest revision with the present text, None without one."""
        known = short_hash(self.content) if self.content is not None else None
        return next((each for each in reversed(self.kept.revisions) if each.hash == known), None)

    def revision(self, number: int | None) -> Revision:
        """Return the revision with this number, the newest one for None. Raises SettingsError."""
        revisions = self.kept.revisions
        if not revisions:
            raise SettingsError((NONE_YET,))
        if number is None:
            return revisions[-1]
        known = next((each for each in revisions if each.number == number), None)
        if known is None:
            first, last = revisions[0].number, revisions[-1].number
            named = f"revision {first}" if first == last else f"revisions {first} to {last}"
            raise SettingsError((f"there is no revision {number}: {named} can be named",))
        return known

    def text(self, number: int | None) -> Text:
        """Return the text of `revision`. Raises SettingsError if it was not kept."""
        revision = self.revision(number)
        return Text(f"revision {revision.number}", _content(revision))


NONE_YET = (
    f"there are no revisions yet: `reconciler serve` keeps them in the ConfigMap {KEPT_IN} once a pass has "
    "used the settings, in each mode but Observe"
)


def _read(connection: Connection, target: Target, config: SettingsSource | None) -> Seen:
    """Return what there is. Raises SettingsError for revisions that can't be read, and ClusterError."""
    store = RevisionStore(connection, target.namespace, lambda: None)
    try:
        kept = store.load()
    except ValueError as error:
        raise SettingsError((store.unreadable(error),)) from error
    if isinstance(config, Path):
        return _judged(Seen(kept, str(config), content=content_of(config)))
    held = (
        read_installed(connection, target.namespace) if config is None else read_settings(connection, config)
    )
    if isinstance(held, str):
        return Seen(kept, "", absent=held)
    return _judged(Seen(kept, str(held), held, held.content))


def _judged(seen: Seen) -> Seen:
    """Return it with the mistakes of the present text."""
    try:
        _parsed(seen.content or b"", seen.source)
    except SettingsError as error:
        return Seen(seen.kept, seen.source, seen.held, seen.content, mistakes=error.mistakes)
    return seen


def _parsed(content: bytes, name: str) -> Settings:
    return parse_content(content, name, None, VariablesAsWritten(os.environ))


def _content(revision: Revision) -> bytes:
    try:
        return revision.content()
    except ValueError as error:
        raise SettingsError((f"revision {revision.number}: {error}",)) from error


def _compared(seen: Seen, numbers: tuple[int, ...]) -> tuple[Text, Text]:
    if len(numbers) == 2:
        return seen.text(numbers[0]), seen.text(numbers[1])
    newest = seen.revision(None)
    used = seen.content is None or newest.hash == short_hash(seen.content)
    if seen.content is None and numbers:
        return seen.text(numbers[0]), seen.text(None)
    if numbers or not used:
        return seen.text(numbers[0] if numbers else None), Text(PRESENT, seen.content or b"")
    if len(seen.kept.revisions) < 2:
        raise SettingsError(("there is one revision only, and the present text is the same",))
    return seen.text(seen.kept.revisions[-2].number), seen.text(None)


_COMPARED = 2 << 20
"""Bytes of all texts that a list compares, the newest first. They take seconds."""


def _values(seen: Seen) -> list[dict[str, Any]]:
    """Return what there is to say of each revision, the newest first."""
    by_number = {each.number: each for each in seen.kept.revisions}
    values, room = [], _COMPARED
    for revision in reversed(seen.kept.revisions):
        changes: list[str] | None = None
        with suppress(ValueError, KeyError):
            texts = by_number[revision.number - 1].content(), revision.content()
            room -= sum(map(len, texts))
            changes = list(changed_keys(*texts)) if room >= 0 else None
        values.append({**_value(seen, revision), "changes": changes})
    return values


def _value(seen: Seen, revision: Revision) -> dict[str, Any]:
    return {
        "revision": revision.number,
        "at": to_text(revision.at),
        "hash": revision.hash,
        "by": revision.by or None,
        "managed": revision.managed,
        "present": revision is seen.present,
    }


def _listed(seen: Seen) -> dict[str, Any]:
    return {
        "source": seen.source or None,
        "hash": None if seen.content is None else short_hash(seen.content),
        "mistakes": list(seen.mistakes),
        "leftOut": seen.kept.left_out,
        "revisions": _values(seen),
    }


def _list_text(seen: Seen, values: Sequence[dict[str, Any]], columns: int | None) -> str:
    return "".join(_folded(safe_line(line), columns) for line in _list_lines(seen, values))


def _list_lines(seen: Seen, values: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield f"settings: {seen.source or seen.absent}"
    if seen.mistakes:
        more = f" (and {count_of(len(seen.mistakes) - 1, 'more mistake')})" if len(seen.mistakes) > 1 else ""
        yield f"refused: {seen.mistakes[0]}{more}"
    elif seen.kept.revisions and seen.content is not None and seen.present is None:
        yield f"the present text, {short_hash(seen.content)}, is no revision: no pass has used it yet"
    if not seen.kept.revisions:
        yield NONE_YET
    for revision, value in zip(reversed(seen.kept.revisions), values, strict=True):
        by = f" by {revision.by}" if revision.by else ""
        mark = ", the present text" if value["present"] else ""
        yield f"{revision.number:>4}  {_moment(revision.at)}  {revision.hash}{by}{mark}"
        what = "what changed is not known"
        if value["changes"] is not None:
            what = in_words(tuple(value["changes"]))
        elif revision is seen.kept.revisions[0]:
            what = "the first one that is kept"
        yield f"      {what}; {count_of(revision.managed, 'node')} managed"
    if seen.kept.left_out:
        size = f"all together may have {LARGEST // 1024} KiB"
        yield f"{count_of(seen.kept.left_out, 'older revision', 'were')} left out before their time: {size}"


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
