"""What hostile nodes, pods, budgets and answers look like; every choice comes from one seeded generator."""

from __future__ import annotations

import gzip
import json
from random import Random
from typing import Any

from reconciler.model.keys import OwnKeys
from tests.support.builders import IMDS
from tests.support.controlplane import workloads

Object = dict[str, Any]

KEYS = OwnKeys()
NAMESPACE = "hostile"
_MOMENTS = ("0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "2099-12-31T23:59:59Z", "9999-12-31T23:59:59Z")
_HUGE = 10**12
_BOMB = gzip.compress(b"x" * 50_000_000, 1)


def texts(random: Random) -> str:
    """A text that somebody might wish us to choke on."""
    return random.choice(
        [
            "",
            "\x1b[2J\x1b[31mall is well",
            "line\nFAILED: everything",
            "\u202egnp.exe",
            "![x](https://evil.example/x.png)",
            "\\ud800",
            "{" * 5000,
            "9" * 5000,
            "x" * random.choice([2_000, 40_000, 200_000]),
        ]
    )


def message(random: Random) -> str:
    """A message of the condition VMEventScheduled."""
    kind = random.choice(
        ["Reboot", "Redeploy", "Freeze", "Preempt", "Terminate", "Hibernate", texts(random)[:50]]
    )
    seconds = random.choice(["-1", "9", "9" * 5000, "1e400", "\u0663"])
    date = random.choice(
        ["Mon, 11 Apr 2026 22:26:58 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", texts(random)[:80]]
    )
    return f"{kind} Scheduled: {date}. DurationInSeconds: {seconds}. {texts(random)}"[:30_000]


def condition(random: Random) -> Object:
    """A condition as a kubelet can write it."""
    kind = random.choice(["VMEventScheduled", "Ready", "PreemptionScheduled", "KernelDeadlock"])
    return {
        "type": kind,
        "status": random.choice(["True", "False", "Unknown"]),
        "reason": random.choice(["VMEventScheduled", "x"]),
        "message": message(random),
        "lastHeartbeatTime": random.choice(_MOMENTS),
        "lastTransitionTime": random.choice(_MOMENTS),
    }


def our_annotations(random: Random, uid: str) -> Object:
    """Our own annotations, written by somebody else."""
    many = [{"EventId": f"e-{one}", "EventType": "Freeze"} for one in range(random.choice([1, 90, 13_900]))]
    events = {"DocumentIncarnation": 1, "Events": many}
    record = {
        "version": random.choice([1, 2, 3, _HUGE, "2", True]),
        "uid": random.choice([uid, "other", texts(random)[:100]]),
        "profiles": random.choice(
            [{}, {"default": {"state": "in-maintenance", "since": random.choice(_MOMENTS)}}]
        ),
        "case": {
            "events": [],
            "cordon": "ours",
            "asked": [{"offer": "replace", "last": _MOMENTS[1], "attempts": _HUGE}],
        },
        "claimedBy": texts(random)[:1000],
    }
    chosen: dict[str, str] = {
        IMDS: random.choice([json.dumps(events)[:250_000], texts(random)]),
        KEYS.record: random.choice([json.dumps(record), texts(random), '{"version":1,"uid":"\\ud800"}']),
        KEYS.request: random.choice(
            [
                json.dumps({"kind": "Reboot", "id": texts(random)[:500], "reason": texts(random)[:900]}),
                json.dumps({"kind": "Reboot", "notBefore": random.choice(_MOMENTS)}),
                texts(random),
            ]
        ),
        f"{KEYS.prefix}/acknowledge": texts(random),
    }
    key = random.choice(sorted(chosen))
    return {key: chosen[key]}


def pod(random: Random, number: int, node: str) -> Object:
    """A pod whose author wants more than is his."""
    made = workloads.pod(f"hostile-{number}", node_name=node, namespace=NAMESPACE)
    meta = made["metadata"]
    meta["annotations"] = {"padding": "x" * random.choice([10, 200_000])}
    meta["labels"] = {
        **meta.get("labels", {}),
        "app": "hostile",
        KEYS.drain: random.choice(["skip", "wait-completed", "x"]),
    }
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True, "uid": "forged"}
    if random.random() < 0.5:
        meta["ownerReferences"] = [
            {**owner, "name": random.choice(["../../kube-system/x", "healthy", "a/b"])}
        ]
    made["spec"]["terminationGracePeriodSeconds"] = random.choice([0, 30, _HUGE])
    return made


def budget(number: int) -> Object:
    """A PodDisruptionBudget that blocks, and is large."""
    made = workloads.budget("hostile", min_available=1, namespace=NAMESPACE)
    made["metadata"] |= {"name": f"hostile-{number}", "annotations": {"padding": "x" * 200_000}}
    return made


def answer(random: Random, *, patience: bool) -> bytes:
    """A raw answer that no API server gives; with `patience` also one that asks to wait without end.

    A drain waits for minutes where an answer to an eviction asks for that, which is right.
    """
    wait = b"999999999999" if patience else b"1"
    return random.choice(
        [
            b"HTTP/1.1 500 Oh\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>",
            b"HTTP/1.1 429 Slow\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 429 Slow\r\nRetry-After: " + wait + b"\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]",
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{",
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: "
            + str(len(_BOMB)).encode()
            + b"\r\n\r\n"
            + _BOMB,
            b"",
        ]
    )
