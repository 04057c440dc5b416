"""Webhooks as hooks, against a server on loopback: what is sent, what an answer means, when to ask again."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler

import pytest

from reconciler.features.hooks.hook import HookAnswer, HookId, HookKey, HookKind, HookRun, HookState
from reconciler.features.hooks.requests import AT_ONCE, HookRequests
from reconciler.features.hooks.settings import WebhookHook
from reconciler.model.content import Secret
from reconciler.model.errors import LockLost, NoThread
from reconciler.model.steps import HeldStep
from tests.support.builders import NOW, minutes
from tests.support.controlplane.processes import wait_for
from tests.support.fakes.loopback import Loopback
from tests.support.fakes.threads import Once, refused

ID = HookId(HeldStep.PRE_DRAIN, "leave", HookKind.WEBHOOK)


def run_of(number: int = 0) -> HookRun:
    key = HookKey(f"n{number}", f"uid-{number}", ID, NOW)
    return HookRun(key, NOW + minutes(10), minutes(10), "Reboot", NOW + minutes(30))


class Service(Loopback):
    """Answers as `status` and `headers` say, once `open` lets it; `got` are the requests."""

    def __init__(self) -> None:
        service = self
        self.got: list[tuple[dict[str, str], dict[str, object]]] = []
        self.status, self.headers = 200, dict[str, str]()
        self.before: Callable[[], object] = lambda: None

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                service.got.append((dict(self.headers), json.loads(body)))
                service.before()
                self.send_response(service.status)
                for name, value in service.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_GET(self) -> None:
                service.got.append((dict(self.headers), {}))
                self.send_error(404)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base has this name
                del format, args

        super().__init__(Handler)


class Asking:
    """The client with a clock that a test sets."""

    def __init__(self, service: Service) -> None:
        self.now = 0.0
        self.requests = HookRequests(lambda: None, lambda: self.now)
        self.hook = WebhookHook(url=Secret(f"{service.address}/leave"), headers={"X-Token": Secret("secret")})

    def ask(self, run: HookRun) -> HookAnswer:
        """Run the hook, wait for its answer, and return what a pass is told."""
        self.requests.answers([run.key])
        self.requests.run(run, self.hook)
        answered(self.requests)
        return self.requests.answers([run.key])[run.key]


def answered(requests: HookRequests) -> None:
    """Wait until no request waits for an answer."""
    wait_for("the answers", lambda: not requests.progress().waiting)


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as made:
        yield made


def test_a_request_names_the_node_the_step_and_the_run(service: Service) -> None:
    run = run_of()
    answer = Asking(service).ask(run)
    ((headers, body),) = service.got

    assert answer.state is HookState.DONE
    assert (headers["Idempotency-Key"], headers["X-Token"]) == (run.key.name, "secret")
    assert body == {
        "apiVersion": "node-maintenance.dev/v1alpha1",
        "kind": "HookRequest",
        "id": run.key.name,
        "step": "pre-drain",
        "name": "leave",
        "node": {"name": "n0", "uid": "uid-0"},
        "event": {"kind": "Reboot", "notBefore": "2026-11-21T12:30:00Z"},
        "since": "2026-11-21T12:00:00Z",
        "until": "2026-11-21T12:10:00Z",
    }


@pytest.mark.parametrize(
    ("status", "headers", "state", "because", "again"),
    [
        (204, {}, HookState.DONE, "127.0.0.1 answered 204", None),
        (202, {"Retry-After": "30"}, HookState.RUNNING, "127.0.0.1 answered 202: not yet", 30),
        (409, {}, HookState.RUNNING, "127.0.0.1 answered 409: not yet", 10),
        (503, {"Retry-After": "0"}, HookState.RUNNING, "127.0.0.1 answered 503: not yet", 1),
        (202, {"Retry-After": "99999"}, HookState.RUNNING, "127.0.0.1 answered 202: not yet", 600),
        (500, {}, HookState.FAILED, "127.0.0.1 answered 500", 10),
        (302, {"Location": "/elsewhere"}, HookState.FAILED, "127.0.0.1 answered 302", 10),
    ],
)
def test_an_answer_says_whether_the_hook_is_done_and_when_to_ask_again(
    service: Service, status: int, headers: dict[str, str], state: HookState, because: str, again: int | None
) -> None:
    service.status, service.headers = status, headers
    answer = Asking(service).ask(run_of())

    seconds = timedelta(seconds=again) if again is not None else None
    assert (answer.state, answer.because, answer.again) == (state, because, seconds)
    assert len(service.got) == 1


def test_it_is_asked_again_after_the_pause_with_the_same_key_and_the_reason_stays(service: Service) -> None:
    service.status = 409
    asking, run = Asking(service), run_of()
    asking.ask(run)
    asking.now = 10.0
    before = asking.requests.answers([run.key])[run.key]
    assert (before.state, before.because) == (HookState.ABSENT, "127.0.0.1 answered 409: not yet")
    service.status = 200
    assert asking.ask(run).state is HookState.DONE
    asking.requests.run(run, asking.hook)
    answered(asking.requests)

    assert [headers["Idempotency-Key"] for headers, _ in service.got] == [run.key.name] * 2


def test_a_service_that_hangs_delays_nobody_and_few_requests_are_in_flight(service: Service) -> None:
    service.before = lambda: service.stopping.wait(30)
    asking = Asking(service)
    runs = [run_of(number) for number in range(AT_ONCE + 3)]
    for run in runs:
        asking.requests.run(run, asking.hook)
    answers = asking.requests.answers([run.key for run in runs])
    states = [answers[run.key].state for run in runs]

    assert states == [HookState.RUNNING] * AT_ONCE + [HookState.ABSENT] * 3
    service.stopping.set()
    answered(asking.requests)


def test_requests_to_one_server_at_the_same_time_log_nothing(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    together = threading.Barrier(2)
    service.before = lambda: together.wait(10)
    asking = Asking(service)
    runs = [run_of(number) for number in range(2)]
    for run in runs:
        asking.requests.run(run, asking.hook)
    answered(asking.requests)

    answers = asking.requests.answers([run.key for run in runs])
    assert [one.state for one in answers.values()] == [HookState.DONE] * 2
    assert caplog.records == []


def test_a_request_without_an_answer_fails_without_its_url(service: Service) -> None:
    asking = Asking(service)
    asking.hook = WebhookHook(url=Secret("http://127.0.0.1:9/secret"))
    answer = asking.ask(run_of())

    assert (answer.state, answer.because) == (HookState.FAILED, "no connection")


def test_a_secret_that_is_missing_is_named_and_nothing_is_sent(service: Service) -> None:
    asking = Asking(service)
    asking.hook = WebhookHook(
        url=Secret(f"{service.address}/"), headers={"X-Token": Secret("${NO_SUCH_TOKEN}")}
    )

    assert asking.ask(run_of()).because == "the environment has no NO_SUCH_TOKEN"
    assert service.got == []


def test_nothing_is_sent_to_the_metadata_service(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_URL", "http://169.254.169.254/metadata")
    asking = Asking(service)
    asking.hook = WebhookHook(url=Secret("${HOOK_URL}"))

    assert "is a link-local address" in asking.ask(run_of()).because


def test_a_process_that_has_lost_the_lock_asks_nobody(service: Service) -> None:
    def lost() -> None:
        raise LockLost("lost")

    with pytest.raises(LockLost):
        HookRequests(lost).run(run_of(), Asking(service).hook)
    assert service.got == []


def test_a_webhook_whose_thread_can_not_start_is_asked_by_the_next_pass(service: Service) -> None:
    asking, run = Asking(service), run_of()
    with refused(Once("hook *")), pytest.raises(NoThread):
        asking.requests.run(run, asking.hook)
    assert asking.requests.progress().waiting == 0

    assert asking.ask(run).state is HookState.DONE
