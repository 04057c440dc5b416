"""drain: write down that the node is drained from now on."""

from __future__ import annotations

from datetime import timedelta

from reconciler.engine.situation import Effects
from reconciler.model.record import CaseRecord, DrainRecord
from reconciler.triggers.start_drain import drain
from tests.support.builders import NOW, situation


def test_the_beginning_is_kept_to_the_second_as_the_annotation_keeps_it() -> None:
    effects = drain(situation(now=NOW + timedelta(microseconds=7)), Effects(CaseRecord()))

    assert effects.record.drain == DrainRecord(NOW, attempt=1, done=None)
