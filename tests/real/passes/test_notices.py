"""Notices of whole processes, one of which is killed while it sends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from reconciler.features.notices.memory import NAME
from reconciler.model.moments import to_text
from tests.real.passes.processes import ENFORCE, Done, Programs, Running
from tests.real.passes.scene import Scene
from tests.support.stub import Answer, Asked, Stub

Object = dict[str, Any]


class Hook:
    """A server that gets CloudEvents. `before` is called with each request."""

    def __init__(self) -> None:
        self.before: Callable[[], None] = lambda: None
        self.server = Stub(self._answer)

    def _answer(self, asked: Asked) -> Answer:
        del asked
        self.before()
        return Answer(b"ok")

    @property
    def events(self) -> list[Object]:
        found: list[Object] = []
        for asked in list(self.server.asked):
            body = json.loads(asked.body)
            found += body if isinstance(body, list) else [body]
        return found


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.server.close()


def configure(programs: Programs, places: str = "100%") -> None:
    budget = f"budget: {{maxUnavailable: {places}}}\n"
    programs.configure(
        f"{ENFORCE}{budget}notify: [{{name: hook, webhook: {{url: ${{HOOK_URL}}}}, group: 0s}}]\n"
    )


def start(programs: Programs, hook: Hook, *arguments: str) -> Running:
    return programs.start(*arguments, pod={"HOOK_URL": f"{hook.server.url}/SECRET"})


def sweep(programs: Programs, hook: Hook) -> Done:
    return start(programs, hook, "sweep", "--output", "json").wait()


def remembered(scene: Scene) -> Object:
    found: Object = json.loads(scene.api.get("configmaps", NAME, "node-maintenance")["data"]["memory"])
    return found


def test_a_process_that_is_killed_while_it_sends_leaves_the_message_to_the_next_one(
    scene: Scene, programs: Programs, hook: Hook
) -> None:
    configure(programs)
    node = scene.node()
    scene.condition_tells(node)
    process = start(programs, hook, "sweep")
    hook.before = process.kill
    assert process.wait().code == -9
    first = {one["id"] for one in hook.events}
    hook.before = lambda: None
    scene.free_lock()
    assert sweep(programs, hook).code == 0

    again = [one["id"] for one in hook.events]
    assert all(again.count(one) == 2 for one in first)
    assert remembered(scene).get("pending", []) == []


def test_people_are_told_of_a_stop_of_all_nodes_and_of_settings_that_change_or_are_refused(
    scene: Scene, programs: Programs, hook: Hook
) -> None:
    scene.node()
    configure(programs)
    process = start(programs, hook, "serve", "--every", "1s")
    process.wait_for("leading")

    def came(topic: str, *words: str) -> Callable[[], bool]:
        def has_come() -> bool:
            said = [event["data"] for event in hook.events]
            texts = [data["text"] for data in said if data["topic"] == topic]
            return any(all(word in text for word in words) for text in texts)

        return has_come

    done = programs.run(
        "hold", "--all", "--now", "--reason", "incident 311", "--config", str(programs.config)
    )
    assert done.code == 0, done.err
    process.does("message about the stop", came("Person", "all nodes are held", "incident 311"))
    programs.configure(f"{ENFORCE}notify: nobody\n")
    process.does("message about settings", came("SettingsRejected", "last good settings", "notify"))
    configure(programs, "50%")
    process.does("message about other settings", came("Person", "the settings changed", "budget"))


def test_twenty_nodes_without_an_approval_are_one_incident_with_the_command_and_links(
    scene: Scene, programs: Programs, hook: Hook
) -> None:
    page = "https://maintenance.example.com"
    entry = f"pagerduty: {{routingKey: key, url: ${{HOOK_URL}}}}, link: '{page}'"
    needs = "cluster: prod\nevents: {Reboot: {approval: true}}\n"
    programs.configure(f"{ENFORCE}{needs}notify: [{{name: oncall, {entry}}}]\n")
    date = to_text(scene.now + timedelta(hours=2))
    names = [scene.node(number) for number in range(20)]
    for name in names:
        scene.annotate(name, "request", json.dumps({"kind": "Reboot", "notBefore": date}))
    process = start(programs, hook, "serve", "--every", "1s")
    process.does("page", lambda: hook.events)
    page_of_all = hook.events[0]

    assert page_of_all["payload"]["custom_details"]["count"] == 20
    assert page_of_all["payload"]["summary"].startswith("[prod] 20 nodes")
    assert "(in 1h" in page_of_all["payload"]["summary"]
    assert page_of_all["payload"]["custom_details"]["command"].startswith("reconciler approve --")
    assert page_of_all["client_url"] == page
    for name in names:
        scene.annotate(name, "request", None)
    process.does("resolved page", lambda: any(sent["event_action"] == "resolve" for sent in hook.events))
    assert {sent["dedup_key"] for sent in hook.events} == {"prod: approved"}
