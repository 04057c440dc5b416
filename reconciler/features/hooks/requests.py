"""Webhooks as hooks: each is asked in a thread of its own, so no pass waits for an answer.

That a webhook agrees, or wants a pause of more than a minute, is in the record as soon as a pass has read its
answer; `sweep` waits for that. Until then it is known to this process only, and another one asks again, with
the same idempotency key.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import urllib3
from msgspec import Struct

from reconciler.features.hooks.hook import LONGEST_PAUSE, HookAnswer, HookKey, HookRun, HookState
from reconciler.features.hooks.settings import WebhookHook
from reconciler.http.bounded import BoundedClient, Bounds
from reconciler.http.failures import in_words
from reconciler.http.plain import SecretMissing, from_environment, from_file, retry_after
from reconciler.http.retrying import Guard
from reconciler.model.content import Secret
from reconciler.model.moments import to_text
from reconciler.model.ports import RequestProgress
from reconciler.settings.fields import check_url
from reconciler.threads import start

AT_ONCE = 8
"""Requests in flight. Further ones wait for a later pass."""

NOT_YET = frozenset({202, 409, 425, 429, 503})
"""Statuses of a service that has understood, and is not done."""

UNDER_WAY = timedelta(seconds=2)
PAUSE, LONGEST_OWN_PAUSE = 10.0, 60.0
"""Seconds until the next request, where the answer names none; doubled after each failure."""

_LARGEST = 64 << 10
_LARGEST_SECRET = 16 << 10


class _NotAsked(Exception):
    """The request could not be made; the message has no secret in it."""


class _Asked(Struct):
    """One run: whether its request is in flight, the last answer, and when to ask again (monotonic)."""

    flies: bool = True
    answer: HookAnswer = HookAnswer(HookState.RUNNING, "it is being asked", UNDER_WAY)
    again: float = 0.0
    failures: int = 0


class HookRequests:
    """All webhooks of a settings file; safe for threads."""

    def __init__(self, guard: Guard, clock: Callable[[], float] = time.monotonic) -> None:
        """Call the guard before each request; `clock` (seconds) is for pauses."""
        self._guard = guard
        self._clock = clock
        self._client = BoundedClient("others/hooks", each=AT_ONCE)
        self._lock = threading.Lock()
        self._asked: dict[HookKey, _Asked] = {}
        self._answered = 0

    def answers(self, keys: Sequence[HookKey]) -> Mapping[HookKey, HookAnswer]:
        """Return what each run has been answered; runs that are not asked for are forgotten."""
        with self._lock:
            self._asked = {key: self._asked[key] for key in keys if key in self._asked}
            return {key: self._answer(self._asked.get(key)) for key in keys}

    def run(self, run: HookRun, hook: WebhookHook) -> None:
        """Ask the webhook in a thread, unless it is being asked; raises LockLost if the lock is not ours.

        After NoThread, the next pass asks it.
        """
        self._guard()
        with self._lock:
            before = self._asked.get(run.key, _Asked(flies=False))
            full = sum(asked.flies for asked in self._asked.values()) >= AT_ONCE
            if full or before.flies or before.answer.state is HookState.DONE:
                return
            start(f"hook {run.key.name}", partial(self._ask, run, hook, before))
            # Only now: nobody may wait for an answer that never comes. The thread waits for this lock.
            before.flies = True
            self._asked[run.key] = before

    def progress(self) -> RequestProgress:
        """Return how many requests wait for an answer, and how many have got one."""
        with self._lock:
            return RequestProgress(sum(asked.flies for asked in self._asked.values()), self._answered)

    def _answer(self, asked: _Asked | None) -> HookAnswer:
        if asked is None:
            return HookAnswer(HookState.ABSENT, again=UNDER_WAY)
        if asked.flies or asked.answer.state is HookState.DONE:
            return asked.answer
        left = asked.again - self._clock()
        if left <= 0:
            return HookAnswer(HookState.ABSENT, asked.answer.because, UNDER_WAY)
        return HookAnswer(asked.answer.state, asked.answer.because, timedelta(seconds=left))

    def _ask(self, run: HookRun, hook: WebhookHook, asked: _Asked) -> None:
        try:
            status, wait = self._post(run, hook)
            answer = _read(status, urlsplit(hook.url.text).hostname or "it")
        except _NotAsked as error:
            answer, wait = HookAnswer(HookState.FAILED, str(error)), None
        except Exception as error:  # noqa: BLE001 - a webhook harms its own hook only
            answer, wait = HookAnswer(HookState.FAILED, f"not asked: {type(error).__name__}"), None
        with self._lock:
            asked.failures = asked.failures + 1 if answer.state is HookState.FAILED else 0
            pause = (
                min(PAUSE * 2.0 ** max(asked.failures - 1, 0), LONGEST_OWN_PAUSE) if wait is None else wait
            )
            asked.answer, asked.flies = answer, False
            asked.again = self._clock() + min(max(pause, 1.0), LONGEST_PAUSE.total_seconds())
            self._answered += 1

    def _post(self, run: HookRun, hook: WebhookHook) -> tuple[int, float | None]:
        url = _resolved(hook.url)
        try:
            check_url(url)
        except ValueError as error:
            raise _NotAsked(f"its URL {error}") from None
        headers = {name: _resolved(text) for name, text in hook.headers.items()}
        try:
            answer = self._client.send(
                "POST",
                url,
                Bounds(hook.timeout.total_seconds(), _LARGEST),
                body=json.dumps(document(run)).encode(),
                headers={**headers, "Content-Type": "application/json", "Idempotency-Key": run.key.name},
            )
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise _NotAsked(in_words(error)) from None
        return answer.status, retry_after(answer.headers.get("Retry-After"))


def document(run: HookRun) -> dict[str, Any]:
    """Return the document that a webhook is sent. Moments are RFC 3339, UTC."""
    key = run.key
    dated = to_text(run.not_before) if run.not_before is not None else None
    return {
        "apiVersion": "node-maintenance.dev/v1alpha1",
        "kind": "HookRequest",
        "id": key.name,
        "step": key.id.step.value,
        "name": key.id.name,
        "node": {"name": key.node, "uid": key.uid},
        "event": {"kind": run.event, "notBefore": dated},
        "since": to_text(key.since),
        "until": to_text(run.until),
    }


def _read(status: int, host: str) -> HookAnswer:
    said = f"{host} answered {status}"
    if status in NOT_YET:
        return HookAnswer(HookState.RUNNING, f"{said}: not yet")
    return HookAnswer(HookState.DONE if 200 <= status < 300 else HookState.FAILED, said)


def _resolved(secret: Secret) -> str:
    try:
        return secret.resolved(from_environment, _file).strip()
    except SecretMissing as error:
        raise _NotAsked(str(error)) from None


def _file(path: str) -> str:
    return from_file(path, _LARGEST_SECRET).decode("utf-8", "replace")
