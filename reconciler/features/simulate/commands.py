"""`reconciler simulate`: plays months of maintenance against a policy, and compares it with another one."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from functools import partial
from pathlib import Path

import click
from msgspec import Struct

from jobs import options
from jobs.runtime.case_lines import MOST_CASES, CaseLines, read_case_lines
from jobs.runtime.environment import Target
from jobs.runtime.event_lines import named
from jobs.runtime.looks import echo_lines
from jobs.runtime.output import echo, echo_document
from jobs.runtime.settings_source import SettingsSource, settings_in_use, with_calendars
from reconciler.features.simulate.document import Policy, as_text, to_document
from reconciler.features.simulate.play import play
from reconciler.features.simulate.scenario import (
    LARGEST_FLEET,
    LONGEST,
    MOST_EVENTS,
    Scenario,
    made_up,
    recorded,
)
from reconciler.model import limits
from reconciler.model.limits import EARLIEST, LATEST, count_of
from reconciler.run import PARTS, run_pass
from reconciler.settings.schema import Settings

_DAYS = 90
_NAMED = 5
"""Broken lines of a history that are named in the error."""


class _Asked(Struct, frozen=True):
    """What to play: the cases of a file, or a made-up fleet; None for an option that is not given."""

    history: Path | None
    made_up: int | None
    nodes: int
    days: int | None
    start: datetime | None


_asked = options.as_one(
    "asked",
    _Asked,
    click.option(
        "--history",
        type=click.Path(allow_dash=True, path_type=Path),
        help="Play the cases of a file of `sweep --history`; - is stdin.",
    ),
    click.option("--made-up", type=int, metavar="SEED", help="Play a made-up fleet; a seed gives one fleet."),
    click.option(
        "--nodes",
        type=click.IntRange(1, LARGEST_FLEET),
        default=1000,
        show_default=True,
        help="The number of nodes.",
    ),
    click.option(
        "--days",
        type=click.IntRange(1, LONGEST),
        help="How many days to play; of a history the last ones.  [default: 90, or the whole history]",
    ),
    click.option(
        "--start",
        type=click.DateTime(["%Y-%m-%d"]),
        help="The first day of a made-up fleet.  [default: today]",
    ),
)


@click.command("simulate")
@options.optional_config
@click.option(
    "--against",
    type=options.SETTINGS_SOURCE,
    metavar=options.SOURCE_NAME,
    help="Other settings, to play the same events against.",
)
@_asked
@options.cluster
@options.output
def simulate(
    config: SettingsSource | None, against: SettingsSource | None, asked: _Asked, target: Target, output: str
) -> int:
    """Play months of maintenance against a policy, or compare two.

    No node of a cluster is read or written. At most 100,000 events are played.
    """
    if (asked.history is None) is (asked.made_up is None):
        raise click.UsageError("name what to play: --history FILE, or --made-up SEED")
    if asked.history is not None and asked.start is not None:
        raise click.UsageError("--start is for --made-up; the cases of a history have their own times")
    now = datetime.now(UTC)
    policy = settings_in_use(config, target, now)
    sources = [policy] if against is None else [policy, settings_in_use(against, target, now)]
    named = []
    for source in sources:
        if source is not policy and source.refused is not None:
            echo(f"warning: {source.instead}", err=True)
        # What the calendars say now counts for the whole play.
        settings, notes = with_calendars(source.settings, target, now)
        for note in notes:
            echo(f"warning: {source.source}: {note}", err=True)
        named.append((source.source, settings))
    scenario = _scenario(asked, named[0][1], now)
    length = (scenario.end - scenario.start).days
    if length > LONGEST:
        raise click.UsageError(
            f"{count_of(length, 'day', 'are')} too many; {LONGEST} can be played. Use --days"
        )
    if len(scenario.events) > MOST_EVENTS:
        message = (
            f"{count_of(len(scenario.events), 'event', 'are')} too many; {MOST_EVENTS} can be "
            f"played. Use --days"
        )
        raise click.UsageError(message)
    policies = [Policy(name, settings, play(scenario, settings, run_pass, PARTS)) for name, settings in named]
    document = policy.named_in(to_document(scenario, policies))
    echo_lines(policy.first_lines(output))
    echo_document(document, output, partial(as_text, document))
    return 0


def _scenario(asked: _Asked, settings: Settings, now: datetime) -> Scenario:
    if asked.history is not None:
        name, lines = named(asked.history), CaseLines(None)
        too_many = f"{name}: it has more than {MOST_CASES} cases; use a part of it"
        read_case_lines(asked.history, lines, too_many)
        if lines.mistakes:
            # A part of a history is not that history.
            shown = [str(mistake) for mistake in lines.mistakes[:_NAMED]]
            more = lines.counts["broken"] - len(shown)
            shown += [f"and {count_of(more, 'more line')} that can't be read"] if more else []
            raise click.UsageError("repair or remove these lines:\n" + "\n".join(shown))
        try:
            return recorded(lines.cases, nodes=asked.nodes, days=asked.days, source=limits.text(name))
        except ValueError as error:
            raise click.UsageError(f"{name}: {error}") from error
    assert asked.made_up is not None
    zone = settings.time_zone
    first = asked.start.date() if asked.start is not None else now.astimezone(zone).date()
    start = datetime.combine(first, time(), zone).astimezone(UTC)
    if not EARLIEST <= start <= LATEST - timedelta(days=LONGEST):
        raise click.UsageError(f"--start {first}: write a day from the year 2001 to 2099")
    return made_up(asked.made_up, start=start, days=asked.days or _DAYS, nodes=asked.nodes)
