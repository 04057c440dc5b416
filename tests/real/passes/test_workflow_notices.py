"""Notifications of a file in the form of maintenance-controller, sent by whole processes to real servers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.real.passes.processes import Programs, Running
from tests.real.passes.scene import Scene
from tests.support.fakes.smtp import FakeSmtp
from tests.support.stub import Answer, Asked, Stub, json_answer

pytestmark = pytest.mark.slow

FILE = """\
intervals: {requeue: 1m}
instances:
  notify:
  - type: slack
    name: required
    config: {hook: "${SLACK}/hook", channel: ops, message: "{{ .Node.Name }} is {{ .State }}"}
    schedule: {type: periodic, config: {interval: 24h}}
  - type: slackThread
    name: thread
    config:
      token: xoxb-1
      channel: ops
      title: Maintenance
      message: "{{ .Node.Name }} for {{ .Profile.Current }}"
      leaseName: slack
      leaseNamespace: default
      period: 12h
      url: "${SLACK}"
    schedule: {type: oneshot, config: {delay: 0s}}
  - type: mail
    name: mail
    config: {auth: false, address: "${SMTP}", from: a@example.com, to: b@example.com, subject: s, message: m}
    schedule: {type: oneshot, config: {delay: 0s}}
  check:
  - {type: hasLabel, name: go, config: {key: go}}
  - {type: hasLabel, name: stop, config: {key: stop}}
profiles:
- name: os
  operational:
    transitions: [{check: go, next: maintenance-required}]
  maintenance-required:
    notify: required && thread && mail
    transitions: [{check: stop, next: in-maintenance}]
"""
DATA = "cloud.sap/maintenance-data"


class Receivers:
    """Slack and a mail server."""

    def __init__(self, smtp: FakeSmtp) -> None:
        self.before: Callable[[], None] = lambda: None
        self.smtp = smtp
        self.slack = Stub(self._answer)

    def _answer(self, asked: Asked) -> Answer:
        self.before()
        return (
            Answer(b"ok") if asked.path == "/hook" else json_answer({"ok": True, "ts": f"17.{asked.number}"})
        )

    def addresses(self) -> dict[str, str]:
        return {"SLACK": self.slack.url, "SMTP": f"127.0.0.1:{self.smtp.port}"}

    def texts(self) -> list[str]:
        return sorted(json.loads(one.body)["text"] for one in list(self.slack.asked))


@pytest.fixture
def people() -> Iterator[Receivers]:
    with FakeSmtp() as smtp:
        made = Receivers(smtp)
        yield made
        made.slack.close()


def sweep(programs: Programs, people: Receivers) -> Running:
    return programs.start("sweep", pod=people.addresses())


def told(scene: Scene, node: str) -> dict[str, Any]:
    annotations = scene.api.get("nodes", node)["metadata"].get("annotations", {})
    found: dict[str, Any] = json.loads(annotations[DATA])["Notifications"]
    return found


def waiting_node(scene: Scene) -> str:
    node = scene.node(0)
    scene.api.patch(
        "nodes", node, {"metadata": {"labels": {"cloud.sap/maintenance-profile": "os", "go": "1"}}}
    )
    return node


def test_each_notification_is_sent_once_over_the_runs_of_a_cronjob(
    scene: Scene, programs: Programs, people: Receivers
) -> None:
    programs.configure(FILE)
    node = waiting_node(scene)
    assert sweep(programs, people).wait().code == 0
    assert people.texts() == []

    done = [sweep(programs, people).wait() for _ in range(3)]

    assert [one.code for one in done] == [0] * 3, [one.err for one in done]
    assert people.texts() == ["Maintenance", f"{node} for os", f"{node} is maintenance-required"]
    assert [one.get_content().strip() for one in people.smtp.box.mails] == ["m"]
    assert sorted(told(scene, node)) == ["mail", "required", "thread"]
    lease = scene.api.get("leases", "slack", "default")["spec"]
    posts = [json.loads(one.body) for one in people.slack.asked if one.path != "/hook"]
    assert [one.get("thread_ts") for one in posts] == [None, lease["holderIdentity"]]
    assert lease["leaseDurationSeconds"] == 12 * 3600
