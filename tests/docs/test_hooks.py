"""docs/hooks.md says what is so: its settings are good, and the Job in them is one of the API."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

from reconciler.clients.kubernetes.hook_jobs import job
from reconciler.model.hooks import HookId, HookKey, HookKind, HookRun, HookStep
from reconciler.model.keys import OwnKeys
from reconciler.settings.load import parse_settings
from tests.real.manifests.schemas import keeps_its_schema
from tests.support.builders import NOW

PAGE = (Path(__file__).parents[2] / "docs" / "hooks.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_each_example_loads_and_its_jobs_keep_the_schema_of_kubernetes() -> None:
    found = [parse_settings(text, "x").hooks for text in EXAMPLES]
    jobs = [(step, one) for hooks in found for step in HookStep for one in hooks.of(step) if one.job]

    assert len(jobs) == 2
    for step, one in jobs:
        key = HookKey("a", "uid-a", HookId(step, one.name, HookKind.JOB), NOW)
        assert one.job is not None
        keeps_its_schema(job(HookRun(key, NOW, timedelta(minutes=1)), one.job, OwnKeys(), "node-maintenance"))
