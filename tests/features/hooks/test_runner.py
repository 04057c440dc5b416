"""Hooks of the settings in whole passes: a webhook on loopback holds a drain, and no pass waits for it."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from reconciler.features.hooks.hook import HookId, HookKey, HookKind, HookRun
from reconciler.features.hooks.process import SettingsHooks
from reconciler.model.errors import NotFound
from reconciler.model.steps import HeldStep
from reconciler.simulation.clock import Actor
from tests.laws.histories import History
from tests.support import builders
from tests.support.builders import DRAIN_NOW, NOW, REQUEST, minutes, node, plan_of
from tests.support.controlplane.processes import wait_for
from tests.support.fakes.loopback import Loopback
from tests.support.stub import connection_to_nowhere
from tests.support.worlds import world_of


class Slow(BaseHTTPRequestHandler):
    """Answers 200 once `agrees` is set."""

    agrees = threading.Event()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.agrees.wait(30)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base has this name
        del format, args


def test_passes_go_on_while_a_webhook_is_asked_and_its_answer_lets_the_drain_begin(tmp_path: Path) -> None:
    Slow.agrees.clear()
    with Loopback(Slow) as service, connection_to_nowhere(tmp_path) as connection:
        policy = builders.settings(
            f"hooks: {{preDrain: [{{name: leave, webhook: {{url: '{service.address}/', timeout: 1m}}}}]}}"
        )
        hooks = SettingsHooks(connection, "node-maintenance", policy, lambda: None)
        nodes = [node(annotations={REQUEST: DRAIN_NOW}), node("b")]
        going = History(world_of(nodes, [builders.pod("web", "a")]), policy)
        going.world.clients["hooks"] = hooks
        going.look()
        plan, _ = going.look()
        reason = next(one.reason for one in plan_of(plan).holds if one.code == "preDrainHooksDone")
        assert reason.startswith("hook pre-drain.leave (it is being asked) holds the drain")
        assert going.world.log.of(Actor.US, "evict") == ()

        Slow.agrees.set()
        wait_for("the answer", lambda: not hooks.progress().waiting)
        going.look()

    assert len(going.world.log.of(Actor.US, "evict")) == 1


def test_a_hook_that_the_settings_no_longer_have_is_not_run(tmp_path: Path) -> None:
    key = HookKey("a", "uid-a", HookId(HeldStep.PRE_DRAIN, "gone", HookKind.WEBHOOK), NOW)
    with connection_to_nowhere(tmp_path) as connection:
        hooks = SettingsHooks(connection, "node-maintenance", builders.settings(), lambda: None)
        with pytest.raises(NotFound, match=r"no hook pre-drain\.gone any more"):
            hooks.run(HookRun(key, NOW + minutes(10), minutes(10)))
