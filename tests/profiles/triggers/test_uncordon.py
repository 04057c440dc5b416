"""uncordon: open what is ours to open, and close the case."""

from __future__ import annotations

import pytest

from reconciler.model.record import Cordon
from reconciler.profiles.situation import Effects
from reconciler.profiles.triggers.nodes import uncordon
from tests.support import builders
from tests.support.builders import situation


@pytest.mark.parametrize(
    ("cordon", "written", "message"),
    [
        (Cordon.OURS, False, "maintenance is over: uncordoned"),
        (Cordon.ADOPTED_MECHANIC, False, "maintenance is over: uncordoned"),
        (Cordon.FOREIGN, None, "maintenance is over: the cordon is not ours"),
    ],
)
def test_only_our_own_or_an_adopted_cordon_is_undone(
    cordon: Cordon, written: bool | None, message: str
) -> None:
    effects = uncordon(situation(), Effects(builders.record(cordon=cordon, quiet_since=builders.NOW)))

    assert effects.unschedulable is written
    assert (effects.record.cordon, effects.record.drain, effects.record.events) == (Cordon.NONE, None, ())
    assert effects.record.quiet_since is None
    assert [notice.message for notice in effects.notices] == [message]
