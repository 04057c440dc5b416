"""Jobs as hooks: what they look like, and what is said of one that can't be read."""

from __future__ import annotations

import re
from datetime import timedelta

from reconciler.features.hooks.hook import HookId, HookKey, HookKind, HookRun
from reconciler.features.hooks.jobs import job
from reconciler.features.hooks.settings import JobHook
from reconciler.model.keys import OwnKeys
from reconciler.model.steps import HeldStep
from tests.support.builders import NOW, minutes

KEY = HookKey("a", "uid-a", HookId(HeldStep.POST_DRAIN, "flash", HookKind.JOB), NOW)
RUN = HookRun(KEY, NOW + minutes(10), timedelta(minutes=9, seconds=59.5), "Reboot", NOW + minutes(20))
CONTAINERS = [{"name": "a", "image": "b", "env": [{"name": "NODE_NAME", "value": "mine"}]}]


def made(**spec: object) -> dict[str, object]:
    pod = {"containers": CONTAINERS, "initContainers": [{"name": "first", "image": "b"}]}
    hook = JobHook(spec={"template": {"spec": pod}, **spec}, on_node=True)
    found: dict[str, object] = job(RUN, hook, OwnKeys(), "maintenance")["spec"]
    assert hook.spec["template"]["spec"] == pod
    return found


def test_a_job_gets_what_the_settings_leave_out() -> None:
    spec = made()
    pod = spec["template"]["spec"]  # type: ignore[index]
    values = {one["name"]: one["value"] for one in pod["initContainers"][0]["env"]}

    assert (spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"]) == (600, 86_400)
    assert (pod["restartPolicy"], pod["nodeName"]) == ("Never", "a")
    assert values == {
        "NODE_NAME": "a",
        "HOOK_STEP": "post-drain",
        "HOOK_NAME": "flash",
        "HOOK_UNTIL": "2026-11-21T12:10:00Z",
        "MAINTENANCE_KIND": "Reboot",
        "MAINTENANCE_NOT_BEFORE": "2026-11-21T12:20:00Z",
    }


def test_the_settings_win_over_what_it_would_get() -> None:
    spec = made(activeDeadlineSeconds=5, ttlSecondsAfterFinished=6)
    container = spec["template"]["spec"]["containers"][0]  # type: ignore[index]

    assert (spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"]) == (5, 6)
    # The last of two variables with one name applies.
    assert [one["value"] for one in container["env"] if one["name"] == "NODE_NAME"] == ["a", "mine"]


def test_each_run_has_a_name_of_its_own_that_a_job_can_have() -> None:
    others = (
        HookKey("a", "uid-b", KEY.id, NOW),
        HookKey("a", "uid-a", HookId(HeldStep.PRE_DRAIN, "flash", HookKind.JOB), NOW),
        HookKey("a", "uid-a", KEY.id, NOW + timedelta(seconds=1)),
    )
    names = {one.name for one in (KEY, *others)}

    assert len(names) == 4
    assert all(re.fullmatch(r"flash-[0-9a-f]{16}", name) for name in names)
