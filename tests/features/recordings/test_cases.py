"""Each recorded case in `cases` is decided as it was when it was recorded.

A case that a user has sent belongs there. If it shows a mistake, its decision is the one that would be right.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.features.recordings.case import replayed
from reconciler.features.recordings.file import differences, from_file
from reconciler.run import PARTS, examine

CASES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_a_recorded_case_is_decided_as_it_was(file: Path) -> None:
    case = from_file(file.read_bytes())

    decision = replayed(case.case, case.answers, case.settings, PARTS, examine).decision

    differ = set(differences(case.decision, decision)).difference(case.incomplete)
    assert {key: (case.decision.get(key), decision.get(key)) for key in differ} == {}
