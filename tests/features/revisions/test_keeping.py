"""`serve` keeps a revision, and sees from time to time whether it is still there."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.runtime.environment import Target
from jobs.runtime.process import Companion, Leading, Observer
from reconciler.features.revisions import KEPT_IN, process
from reconciler.features.revisions.client import KEY
from reconciler.features.revisions.revisions import from_text
from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.connection import Connection
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Self
from reconciler.settings.load import parse_content
from tests.support.builders import NOW
from tests.support.controlplane.processes import wait_for
from tests.support.fakes.clock import SystemClock
from tests.support.patches import answer_patch
from tests.support.stub import Answer, Asked, Stub, json_answer, status

SETTINGS = b"mode: Enforce\n"


class Nobody:
    """A notifier that is not asked."""

    def notify(self, notification: object) -> bool:
        raise AssertionError(notification)


class Keeping:
    """The feature in a `serve`, and the ConfigMap that it keeps: None if there is none."""

    def __init__(self, folder: Path) -> None:
        self.found: dict[str, Any] | None = None
        self.permitted = True
        self.stub = Stub(self._answer)
        connection = Connection(str(self.stub.write_kubeconfig(folder / "kubeconfig")))

        def guard() -> None: ...

        settings = parse_content(SETTINGS, "maintenance.yaml")
        assert process.PROCESS.companion is not None
        leading = Leading(
            connection,
            Cluster(connection),
            Target(),
            Self(),
            SystemClock(),
            guard,
            guard,
            Observer(),
            settings=lambda: settings,
            goes_on=True,
        )
        self._companion: Companion | None = process.PROCESS.companion(leading)

    def passes(self) -> None:
        """Have a pass end, and what it began."""
        assert self._companion is not None
        self._companion.after(Plan(NOW, "Enforce", managed=3), (), Nobody())
        ours = "revisions of the settings"
        wait_for("the write", lambda: ours not in {each.name for each in threading.enumerate()})

    @property
    def texts(self) -> list[bytes]:
        """What is kept."""
        data = self.found["data"][KEY] if self.found is not None else ""
        return [each.content() for each in from_text(data).revisions]

    def _answer(self, asked: Asked) -> Answer:
        if not self.permitted:
            return status(403, "Forbidden", f"you may not read {asked.path}")
        if asked.method == "POST" and asked.path.endswith("/configmaps"):
            body = json.loads(asked.body)
            metadata = {**body["metadata"], "uid": "uid-1", "resourceVersion": "1"}
            self.found = {"metadata": metadata, "data": body["data"]}
            return json_answer(self.found, 201)
        if self.found is None or not asked.path.endswith(f"/{KEPT_IN}"):
            if asked.path.endswith("/configmaps"):
                return json_answer({"metadata": {}, "items": []})
            return status(404, "NotFound", "nothing is here")
        return answer_patch(self.found, asked) if asked.method == "PATCH" else json_answer(self.found)


@pytest.fixture
def keeping(tmp_path: Path) -> Iterator[Keeping]:
    made = Keeping(tmp_path)
    yield made
    made.stub.close()


def test_a_revision_that_is_there_costs_no_request_in_the_next_passes(keeping: Keeping) -> None:
    keeping.passes()
    assert keeping.texts == [SETTINGS]
    asked = len(keeping.stub.asked)
    keeping.passes()
    assert len(keeping.stub.asked) == asked


@pytest.mark.parametrize("text", [None, "{", ""])
def test_a_revision_that_somebody_has_removed_or_broken_is_kept_again(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    monkeypatch.setattr(process, "LOOKS_AGAIN", 0.0)
    keeping.passes()
    if text is None:
        keeping.found = None
    else:
        assert keeping.found is not None
        keeping.found["data"][KEY] = text
    keeping.passes()

    assert keeping.texts == [SETTINGS]
    writes = [asked for asked in keeping.stub.asked if asked.method != "GET"]
    keeping.passes()
    assert [asked for asked in keeping.stub.asked if asked.method != "GET"] == writes


def test_without_the_right_to_keep_it_a_warning_says_so_once(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(process, "AGAIN", 0.0)
    keeping.permitted = False
    keeping.passes()
    asked = len(keeping.stub.asked)
    keeping.passes()

    assert len(keeping.stub.asked) > asked
    (line,) = [line for line in caplog.messages if "are not kept" in line]
    assert f"node-maintenance/{KEPT_IN}: needs get configmaps in node-maintenance" in line
    keeping.permitted = True
    keeping.passes()
    assert keeping.texts == [SETTINGS]
