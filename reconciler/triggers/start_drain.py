"""drain: record that the drain of the node starts now."""

from __future__ import annotations

from dataclasses import replace

from reconciler.engine.plugins import trigger
from reconciler.engine.situation import Effects, Situation
from reconciler.model.record import DrainRecord


@trigger("drain")
def drain(situation: Situation, effects: Effects) -> Effects:
    """Record the start of the drain; the plan orders the drain for as long as the record has it."""
    began = DrainRecord(situation.now.replace(microsecond=0))
    return replace(effects, record=replace(effects.record, drain=began))
