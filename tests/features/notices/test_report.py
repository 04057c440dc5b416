"""`reconciler report` says which notices can't be sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.cli import main
from reconciler.features.notices.deliveries import failed
from reconciler.features.notices.memory import KEY, NAME, Memory, to_text
from tests.jobs.few_rights import server
from tests.support.builders import NOW


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (
            to_text(failed(Memory(), "ops", "no connection", NOW)),
            "notices to ops fail since 2026-11-21T12:00:00Z: no connection; 0 messages wait",
        ),
        ("{", "notices: whether they can be sent is not known: "),
        (None, "notices: whether they can be sent is not known: needs get configmaps in node-maintenance"),
    ],
)
def test_the_report_says_which_notices_can_not_be_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: str | None, note: str
) -> None:
    config = tmp_path / "maintenance.yaml"
    config.write_text("notify: [{name: ops, webhook: {url: 'http://127.0.0.1:1/'}}]\n", encoding="utf-8")
    extra = {}
    if data is not None:
        found = {"kind": "ConfigMap", "metadata": {"name": NAME, "uid": "u"}, "data": {KEY: data}}
        extra[f"/api/v1/namespaces/node-maintenance/configmaps/{NAME}"] = found
    with server(tmp_path) as answers:
        answers.extra.update(extra)
        arguments = ["report", "--kubeconfig", str(answers.kubeconfig), "--config", str(config)]
        code = main([*arguments, "--output", "json"])

    assert code == 0
    assert [one for one in json.loads(capsys.readouterr().out)["notes"] if one.startswith(note)]
