"""kubectl's own table of pods, by eviction and by deletion, and its table of waiting."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler.drain import judge, survey
from reconciler.model.drains import DrainOptions, Phase
from reconciler.model.pod import Owner, Pod, PodSpec
from reconciler.model.values import replace
from tests.drain.drainer.driving import START, Drive, Scene

_CASES = Path(__file__).parent.parent / "cases"


def _rows(file: str) -> list[Any]:
    cases = json.loads((_CASES / file).read_text(encoding="utf-8"))["cases"]
    return [pytest.param(case, id=case["name"]) for case in cases]


def _pod(case: dict[str, Any]) -> Pod:
    """Make the pod that a row describes in kubectl's shorthand."""
    text, name = case["pod"], case["name"]
    words = [word for word in text.replace("+", ",").split(",") if word]
    kind = next((word.partition("=")[2] for word in words if word.startswith("controller=")), None)
    phase = next((word.partition("=")[2] for word in words if word.startswith("phase=")), "Running")
    if "RS pod" in text:
        kind = "ReplicaSet"
    elif kind is None and name.startswith("DS"):
        kind = "DaemonSet"
    return Pod(
        "default",
        "bar",
        "uid-bar",
        "node",
        owner=Owner(kind, "owner", "apps/v1") if kind else None,
        phase=phase,
        spec=PodSpec(empty_dir=any("emptydir" in word.lower() for word in words)),
    )


def _options(flags: list[str], *, use_delete: bool) -> DrainOptions:
    return DrainOptions(
        strict=True,
        use_delete=use_delete,
        ignore_daemonsets="--ignore-daemonsets" in flags,
        evict_empty_dir="--delete-emptydir-data" in flags,
        evict_unmanaged="--force" in flags,
    )


@pytest.mark.parametrize("use_delete", [False, True], ids=["by eviction", "by deletion"])
@pytest.mark.parametrize("case", [row for row in _rows("kubectl_drain_pods.json") if "fail to" not in row.id])
def test_a_pod_of_kubectls_table_is_treated_as_kubectl_treats_it(
    case: dict[str, Any], use_delete: bool
) -> None:
    options = _options(case["flags"], use_delete=use_delete)
    seen = survey([_pod(case)], options, now=START)
    action = seen.verdicts[0].action
    goes = "delete" if use_delete else "evict"
    assert action == {"evict": goes, "skip": "skip", "fatal": "refuse"}[case["outcome"]]
    if case["warning"]:
        assert case["warning"] in seen.warnings


@pytest.mark.parametrize("use_delete", [False, True], ids=["by eviction", "by deletion"])
@pytest.mark.parametrize(
    ("pod", "flags", "outcome", "reason"),
    [
        pytest.param({"owner": "DaemonSet"}, [], "refuse", "--ignore-daemonsets", id="DS-managed pod"),
        pytest.param({"owner": "DaemonSet"}, ["--ignore-daemonsets"], "skip", "ignoring", id="DS ignored"),
        pytest.param({"owner": None}, ["--force"], "goes", "deleting Pods that declare", id="naked, --force"),
        pytest.param({"owner": "ReplicaSet"}, [], "goes", None, id="RS-managed pod"),
        pytest.param({"owner": "Job"}, [], "goes", None, id="Job-managed pod"),
        pytest.param(
            {"owner": "Job", "empty_dir": True},
            [],
            "refuse",
            "local storage",
            id="Job with emptyDir, running",
        ),
        pytest.param({"owner": "DaemonSet", "phase": "Failed"}, [], "goes", None, id="failed DS pod"),
        pytest.param({"owner": None, "phase": "Failed"}, [], "goes", None, id="failed naked pod"),
        pytest.param({"owner": None, "mirror": True}, [], "skip", "static", id="mirror pod"),
    ],
)
def test_the_rows_between_kubectls_rows(
    pod: dict[str, Any], flags: list[str], outcome: str, reason: str | None, use_delete: bool
) -> None:
    made = Pod(
        "default",
        "bar",
        "uid-bar",
        "node",
        owner=Owner(pod["owner"], "owner") if pod["owner"] else None,
        phase=pod.get("phase", "Running"),
        spec=PodSpec(empty_dir=pod.get("empty_dir", False)),
        annotations={"kubernetes.io/config.mirror": "x"} if pod.get("mirror") else {},
    )
    verdict = judge(made, _options(flags, use_delete=use_delete), now=START).verdict
    assert verdict.action == (("delete" if use_delete else "evict") if outcome == "goes" else outcome)
    assert reason is None or any(reason in text for text in verdict.reasons)


@pytest.mark.parametrize("force", [False, True], ids=["without --force", "with --force"])
def test_a_pod_whose_daemonset_is_gone_goes_by_force_only(force: bool) -> None:
    pod = Pod("default", "bar", "u", "node", owner=Owner("DaemonSet", "ds", "apps/v1"))
    options = DrainOptions(strict=True, evict_unmanaged=force, gone_daemonsets=frozenset({"default/ds"}))
    verdict = judge(pod, options, now=START).verdict
    assert verdict.action == ("evict" if force else "refuse")
    assert verdict.reasons == ('daemonsets.apps "ds" not found',)


@pytest.mark.parametrize("case", _rows("kubectl_waitdelete.json"))
def test_waiting_for_a_pod_ends_as_kubectls_does(case: dict[str, Any]) -> None:
    scene = Scene("a")
    pod = scene.deployment("web", "a")[0]
    options = DrainOptions()
    if case["error"]:
        scene.cluster.finalizers.add(pod.uid)
    if "skip" in case["name"]:
        scene.change_pod(replace(pod, deleting_until=START - timedelta(seconds=100)))
        options = DrainOptions(skip_terminating_after=timedelta(seconds=10))
    progress = Drive(scene).start("a", options=options, timeout=timedelta(seconds=60)).run()["a"]
    assert (progress.phase is Phase.TIMED_OUT) == bool(case["error"])
    assert (progress.phase is Phase.DRAINED) == (not case["pending"])


@pytest.mark.parametrize(
    ("age", "skipped"),
    [
        pytest.param(10.9, False, id="kubectl compares whole seconds"),
        pytest.param(11, True, id="longer"),
        pytest.param(-20, False, id="its grace is not over"),
    ],
)
def test_a_pod_that_is_terminating_for_long_is_skipped(age: float, skipped: bool) -> None:
    pod = Pod("a", "b", "u", "n", owner=Owner("Job", "j"), deleting_until=START - timedelta(seconds=age))
    options = DrainOptions(skip_terminating_after=timedelta(seconds=10))
    assert (judge(pod, options, now=START).action == "skip") == skipped
