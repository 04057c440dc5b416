"""`reconciler record` and `reconciler replay`: a case of a user, and what this program does with it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

import click

from jobs import options
from jobs.completion import values
from jobs.runtime.by_hand import check_nodes
from jobs.runtime.environment import Target, connected
from jobs.runtime.output import check_output, echo, echo_document, print_text, write_output
from jobs.runtime.outside import examined
from jobs.runtime.settings_source import SettingsSource, settings_to_show
from reconciler.features.recordings.case import ROOMS, Case, answers_of, decision_of, read_case, replayed
from reconciler.features.recordings.file import (
    LARGEST,
    Recorded,
    differences,
    from_file,
    policy_of,
    to_document,
    to_file,
)
from reconciler.features.recordings.standins import Hidden
from reconciler.features.recordings.words import public_words
from reconciler.model.errors import OutputError, ReconcilerError
from reconciler.model.explanation import Examination
from reconciler.model.moments import to_text
from reconciler.passes.assess import assess
from reconciler.report.explain import explain_node
from reconciler.report.explained import Explanation, as_text
from reconciler.report.text import shown
from reconciler.run import PARTS, examine
from reconciler.settings.schema import Settings

READ_IT = "read it before you send it; `reconciler replay FILE` shows what a developer sees"


@click.command("record")
@click.argument("node", shell_complete=values.nodes)
@options.optional_config
@options.cluster
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to this file, whole or not at all. Its folder must exist.  [default: stdout]",
)
@click.option("--show-replaced", is_flag=True, help="Print on stderr what was replaced by what. Keep it.")
def record(
    node: str, config: SettingsSource | None, target: Target, out: Path | None, show_replaced: bool
) -> int:
    """Write what a node says to a file without names that can be sent.

    The file also has the decision about the node. Each word that is not public is replaced by a stand-in.
    It only reads the cluster, and needs no more permissions than `reconciler report`.
    """
    if out is not None:
        check_output(out)
    policy = settings_to_show(config, target, datetime.now(UTC))
    with connected(target) as connection:
        found = examined(connection, target, policy.settings, with_preview=True, also_pods=True)
    check_nodes([node], {each.name for each in found.snapshot.nodes})
    written = policy.settings.origin.content.decode("utf-8-sig")
    text, hidden, notes = recorded(node, found, policy.settings, written)
    if out is not None:
        write_output(out, text)
    else:
        print_text(text, nl=False)
    for note in notes:
        echo(f"note: {note}", err=True)
    for each in hidden if show_replaced else ():
        echo(f"{each.stand_in}  {each.word}", err=True)
    echo(f"{len(hidden)} words were replaced. The file goes to other people: {READ_IT}", err=True)
    return policy.exit_code


@cache
def _public() -> frozenset[str]:
    return public_words(PARTS, Case)


def recorded(
    name: str, found: Examination, settings: Settings, policy: str
) -> tuple[str, tuple[Hidden, ...], list[str]]:
    """Return the text of a file about the node, what was replaced in it, and notes for its sender.

    `policy` is the text of the settings.
    """
    snapshot, now = found.snapshot, found.plan.now
    node = next(node for node in snapshot.nodes if node.name == name)
    explained = explain_node(node, found, assess(snapshot, now).of(name), settings, now)
    decision, public = decision_of(explained), _public()
    sent = policy_of(policy, settings.with_calendars(snapshot.for_settings.calendars), now)
    for room in ROOMS:
        case = read_case(name, snapshot, settings, PARTS, now, room)
        answers = answers_of(snapshot, PARTS, (case.node, *case.others))
        document, hidden = to_document(case, answers, sent, decision, public)
        text = to_file(document)
        if len(text) <= LARGEST:
            break
    else:
        raise OutputError(f"what is read of {name} does not fit into {LARGEST} characters")
    notes = [f"left out of the settings: {', '.join(document['leftOut'])}"] if document["leftOut"] else []
    try:
        again = from_file(text.encode())
        incomplete = differences(again.decision, _replayed(again)[1])
    except (ValueError, ReconcilerError) as error:
        incomplete = ["all"]
        notes.append(f"the file can't be replayed: {error}")
    if incomplete:
        notes.append(
            f"from the file alone, the decision is another one ({', '.join(incomplete)}): it depends on more "
            "than a file has"
        )
        text = to_file({**document, "incomplete": incomplete})
    return text, hidden, notes


def _replayed(what: Recorded) -> tuple[Explanation, dict[str, object]]:
    made = replayed(what.case, what.answers, what.settings, PARTS, examine)
    return Explanation(made.found.plan, made.explained), made.decision


@click.command("replay")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@options.output
def replay(file: Path, output: str) -> int:
    """Print what is decided about a recorded node, and what differs.

    FILE - is stdin. It asks no cluster. The exit code is 1 if the decision differs from the recorded one.
    """
    try:
        with click.open_file(str(file), "rb") as stream:
            what = from_file(stream.read(LARGEST + 1))
        explanation, decision = _replayed(what)
    except OSError as error:
        raise click.UsageError(f"{file}: can't be read: {error.strerror or error}") from error
    except (ValueError, ReconcilerError) as error:
        raise click.UsageError(f"{file}: {error}") from error
    keys = [key for key in differences(what.decision, decision) if key not in what.incomplete]
    document = {
        **explanation.document,
        "recorded": {"at": to_text(what.case.at), "program": what.program, "decision": what.decision},
        "decision": decision,
        "differs": keys,
        "incomplete": what.incomplete,
    }
    lines = [f"recorded at {to_text(what.case.at)} by version {what.program or 'unknown'}"]
    lines += [
        f"differs: {key} was {_words(what.decision.get(key))}, is {_words(decision.get(key))}" for key in keys
    ]
    lines += (
        [f"not compared, the file has too little: {', '.join(what.incomplete)}"] if what.incomplete else []
    )
    lines += [] if keys else ["the decision is the recorded one"]

    def text(columns: int | None) -> str:
        zone = ZoneInfo(explanation.plan.settings.time_zone)
        return f"{shown([*lines, ''], zone, columns)}{as_text(explanation, columns, wide=True)}"

    echo_document(document, output, text)
    return 1 if keys else 0


def _words(value: object) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = ", ".join(value)
    return (value or "none") if isinstance(value, str | None) else json.dumps(value)
