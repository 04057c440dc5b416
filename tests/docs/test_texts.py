"""No text of the program has a bad sentence of a kind that was found once: `1 minutes`, `0:50:00`, `None`.

What is printed is read in golden files, in the examples of the docs, and over any history of a cluster. What
is not printed there is read in the code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.cli import commands
from jobs.commands import COMMANDS
from reconciler.calendar.values import in_zone
from reconciler.passes.assess import assess
from reconciler.report.document import to_report
from reconciler.report.explain import explain_node
from reconciler.report.explained import Explanation
from reconciler.report.explained import as_text as explained_text
from reconciler.report.text import as_text
from reconciler.run import examine
from reconciler.settings.schema import Settings
from tests.docs.situations import SITUATIONS
from tests.laws.histories import History, Step, people_steps, platform_steps, small_world, waits
from tests.laws.hits import Hits
from tests.support import strategies
from tests.support.searching import examples
from tests.support.sentences import NOUNS, WORD, documented, far_away_unsaid, faults

ROOT = Path(__file__).parents[2]
FILES = [path for room in ("reconciler", "jobs") for path in sorted((ROOT / room).rglob("*.py"))]
GOLDEN = [path for path in sorted((ROOT / "tests").rglob("golden/*")) if path.suffix in (".txt", ".md")]
PRINTED = [path for path in GOLDEN if path.parent.parent.name != "metrics"]
PLURAL = re.compile(rf" (?:other |more )?(?:{NOUNS})\b")
ALSO_VERBS = re.compile(r" (?:drains|holds|starts|entries)\b")
"""Verbs as well; and entries are counted only above their limit."""
READ_BY_PEOPLE = re.compile(r"[a-z]+ [a-z]+ [a-z]+")
"""A literal with three words in a row is a sentence, not a list of keys."""
SHOWN = Hits()


Parts = Sequence[ast.AST]
"""All nodes of the tree of a file."""


def parts_of(source: str) -> Parts:
    """Return all nodes of the tree of a file."""
    return tuple(ast.walk(ast.parse(source)))


@pytest.fixture(scope="module")
def program() -> Mapping[str, Parts]:
    """Each file of the program by its name, parsed for all tests that read it."""
    return {str(path.relative_to(ROOT)): parts_of(path.read_text(encoding="utf-8")) for path in FILES}


def counts(parts: Parts) -> list[str]:
    """Each text that puts a value of the run before a plural, without a look at the value."""
    chosen = {
        id(part) for choice in parts if isinstance(choice, ast.IfExp) for part in (choice.body, choice.orelse)
    }
    return [
        f"line {text.lineno}: {ast.unparse(text)}"
        for text in parts
        if isinstance(text, ast.JoinedStr) and id(text) not in chosen
        for value, after in pairwise(text.values)
        if isinstance(value, ast.FormattedValue)
        # A constant is never 1, nor are the hours of a day on which the clocks change.
        if not re.match(r"[A-Z_]+\b|limits\.|hours$", ast.unparse(value.value))
        if isinstance(after, ast.Constant) and PLURAL.match(str(after.value))
        if not ALSO_VERBS.match(str(after.value))
    ]


def raw_errors(parts: Parts) -> list[str]:
    """Each text with the name of an exception's class: people read why a document can't be read."""
    return [
        f"line {part.lineno}: {ast.unparse(part)}"
        for part in parts
        if isinstance(part, ast.FormattedValue) and part.conversion == ord("r")
        if isinstance(part.value, ast.Name) and part.value.id in ("error", "failure", "problem")
    ]


def sentences(parts: Parts) -> Iterator[str]:
    """Yield each literal that a person may read; no docstring is one."""
    documentation = {id(node.value) for node in parts if isinstance(node, ast.Expr)}
    for node in parts:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield from [node.value] if READ_BY_PEOPLE.search(node.value) else []


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ('f"{age} minutes old"', 1),
        ('f"{len(nodes)} other nodes wait"', 1),
        ('f"{HORIZON.days} days"', 0),
        ('"1 day" if days == 1 else f"{days} days"', 0),
    ],
)
def test_a_count_is_seen_where_nothing_looks_at_its_value(source: str, wrong: int) -> None:
    assert len(counts(parts_of(source))) == wrong


def test_no_text_counts_one_thing_as_several(program: Mapping[str, Parts]) -> None:
    assert {name: seen for name, parts in program.items() if (seen := counts(parts))} == {}


def test_no_text_has_the_name_of_an_exception_in_it(program: Mapping[str, Parts]) -> None:
    assert len(raw_errors(parts_of('f"it can\'t be read: {error!r}"'))) == 1
    assert {name: seen for name, parts in program.items() if (seen := raw_errors(parts))} == {}


def test_each_name_in_a_sentence_of_the_program_is_in_the_docs(program: Mapping[str, Parts]) -> None:
    """A person can look up a setting, a check or a field of Kubernetes; a name of the code says nothing."""
    unknown = {
        word: text
        for parts in program.values()
        for text in sentences(parts)
        for word in WORD.findall(text)
        if word not in documented()
    }

    assert unknown == {}


@pytest.mark.parametrize(
    "text",
    [
        "its last heartbeat is 1 minutes old",
        "1 other nodes wait",
        "its grace period is 0:50:00",
        "it waits for 1 day, 2:00:00",
        "it starts at 2026-11-21T12:00:00Z",
        "it starts at 2026-11-21 12:00:00+00:00",
        "the owner is None",
        "it is drained: True",
        "it can't be read: JSONDecodeError('Expecting value')",
        "held by <reconciler.model.plan.Hold object at 0x7f>",
        "the drain_due check fails",
    ],
)
def test_each_kind_of_bad_sentence_is_seen(text: str) -> None:
    assert len(list(faults(text))) == 1


def test_a_row_with_a_moment_alone_is_seen() -> None:
    rows = (
        "  waits  until Sat 2026-11-21 12:30 UTC\n  planned  at 12:45 (in 45m)\n  drain  begun now, at 12:00"
    )

    assert list(far_away_unsaid(rows)) == ["waits  until Sat 2026-11-21 12:30 UTC"]


@pytest.mark.parametrize(
    "text",
    [
        "its last heartbeat is 1 minute old, 21 nodes wait",
        "at Sat 2026-11-21 12:00:30 UTC (in 1h30m)",
        "StorageReady is True on 2 of 2 nodes",
        "set events.Reboot.outsideWindow or budget.maxUnavailable: 1",
        "node-maintenance.dev/maintenance-profile=os",
    ],
)
def test_a_good_sentence_is_no_bad_one(text: str) -> None:
    assert list(faults(text)) == []


@pytest.mark.parametrize("file", PRINTED, ids=lambda path: path.name)
def test_no_golden_file_has_a_bad_sentence(file: Path) -> None:
    assert list(faults(file.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("heading", sorted(SITUATIONS))
def test_no_answer_of_the_docs_has_a_bad_sentence(heading: str) -> None:
    assert list(faults(SITUATIONS[heading]().text)) == []


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_no_help_has_a_bad_sentence(name: str) -> None:
    context = click.Context(commands, info_name="reconciler")
    command = commands.get_command(context, name)
    assert command is not None

    assert list(faults(command.get_help(click.Context(command, context, name)))) == []


@SHOWN.at_least(300)
@settings(max_examples=examples(60))
@given(
    st.one_of(strategies.policies(mode="Enforce"), strategies.policies()),
    st.lists(st.tuples(st.one_of(platform_steps, people_steps), waits), max_size=6),
)
def test_nothing_that_is_printed_over_any_history_has_a_bad_sentence(
    policy: Settings, steps: list[tuple[Step, timedelta]]
) -> None:
    history = History(small_world(), policy)
    for happen, wait in steps:
        happen(history)
        history.wait(wait)
        plan, _ = history.look()
        report = as_text(to_report(plan, rehearsed=False))
        assert [*faults(report), *far_away_unsaid(report)] == []
        examination = examine(history.world.outside, policy, history.now, with_preview=True, also_pods=True)
        assessed = assess(examination.snapshot, history.now)
        for seen in examination.snapshot.nodes:
            explanation = explain_node(seen, examination, assessed.of(seen.name), policy, history.now)
            for wide in (False, True):
                printed = explained_text(Explanation(examination.plan, explanation), wide=wide)
                assert [*faults(printed), *far_away_unsaid(printed)] == []
            SHOWN.count()
    for event in history.world.cluster.events:
        assert list(faults(in_zone(event.notice.message, ZoneInfo("UTC")))) == []
