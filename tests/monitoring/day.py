"""The day of the demo, as Prometheus would have scraped it each minute."""

from __future__ import annotations

from datetime import UTC, timedelta
from functools import partial

from prometheus_client.parser import text_string_to_metric_families

from reconciler.features.metrics.catalogue import PREFIX
from reconciler.features.metrics.metering import Meter
from reconciler.run import run_pass
from reconciler.settings.load import parse_settings
from reconciler.simulation.day import END, SETTINGS, START, build, chapters
from reconciler.simulation.world import World

MINUTES = int((END - START) / timedelta(minutes=1))


def scraped() -> list[dict[str, str]]:
    """Return the series of `promtool test rules`, one value a minute, with the day's start as second 0."""
    settings = parse_settings(SETTINGS, "demo.yaml")
    world, meter = World(START.astimezone(UTC)), Meter()
    world.ended = meter
    build(world)
    for chapter in chapters():
        world.clock.at(chapter.at.astimezone(UTC), partial(chapter.begin, world))
    meter.leads(leads=True)
    found: dict[str, list[str]] = {}
    for minute in range(MINUTES):
        world.clock.advance((START + timedelta(minutes=minute)).astimezone(UTC))
        plan, _ = run_pass(world.outside, settings, world.now)
        meter.shows(plan, world.drainer.progress())
        meter.succeeded(0.1, world.now)
        for name, value in _shown(meter):
            values = found.setdefault(name, [])
            values += [*["_"] * (minute - len(values)), value]
    return [{"series": name, "values": _whole(values)} for name, values in found.items()]


def _shown(meter: Meter) -> list[tuple[str, str]]:
    """Return each series with its value; moments count from the start of the day."""
    start = START.timestamp()
    return [
        (
            sample.name + "{" + ",".join(f'{key}="{value}"' for key, value in sample.labels.items()) + "}",
            f"{sample.value - start if sample.name.endswith('_timestamp_seconds') else sample.value:.10g}",
        )
        for family in text_string_to_metric_families(meter.text().decode())
        for sample in family.samples
        if sample.name.startswith(PREFIX)
    ]


def _whole(values: list[str]) -> str:
    """Return the values of a series that may have ended before the day; it is stale from then on."""
    ended = ["stale"] if len(values) < MINUTES else []
    # Prometheus also marks the gaps in a series.
    marked = [
        "stale" if value == "_" and number and values[number - 1] != "_" else value
        for number, value in enumerate(values)
    ]
    return " ".join((*marked, *ended))
