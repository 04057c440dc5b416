"""docs/hooks.md says what is so: its settings are good, and the Job in them is one of the API."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.features.hooks.hook import HookId, HookKey, HookKind, HookRun
from reconciler.features.hooks.jobs import job
from reconciler.features.hooks.settings import HOOKS
from reconciler.model.keys import OwnKeys
from reconciler.model.steps import HeldStep, holders_of
from reconciler.settings.load import parse_settings
from tests.docs.pages import headings
from tests.real.manifests.schemas import keeps_its_schema
from tests.support.builders import NOW

PAGE = (Path(__file__).parents[3] / "docs" / "hooks.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("name", [*HeldStep, *HookKind])
def test_each_step_and_each_kind_of_hook_has_its_heading(name: str) -> None:
    assert name in headings("hooks.md")


@pytest.mark.parametrize("step", HeldStep)
def test_each_step_has_an_annotation_as_an_example(step: HeldStep) -> None:
    section = PAGE.partition(f"\n### `{step}`\n")[2].partition("\n##")[0]
    ((node, key, value),) = re.findall(r"kubectl annotate node (\S+) ([^\s=]+)=(\S+)", section)

    (holder,) = holders_of({key: value}, OwnKeys().prefix)

    assert node
    assert (holder.step, holder.owner) == (step, value)


def test_each_kind_of_the_settings_has_an_example() -> None:
    found = [HOOKS.of(parse_settings(text, "x")) for text in EXAMPLES]

    kinds = {one.kind for hooks in found for step in HeldStep for one in hooks.of(step)}

    assert {HookKind.ANNOTATION, *kinds} == set(HookKind)


def test_each_example_loads_and_its_jobs_keep_the_schema_of_kubernetes() -> None:
    found = [HOOKS.of(parse_settings(text, "x")) for text in EXAMPLES]
    jobs = [(step, one) for hooks in found for step in HeldStep for one in hooks.of(step) if one.job]

    assert len(jobs) == 2
    for step, one in jobs:
        key = HookKey("a", "uid-a", HookId(step, one.name, HookKind.JOB), NOW)
        assert one.job is not None
        keeps_its_schema(job(HookRun(key, NOW, timedelta(minutes=1)), one.job, OwnKeys(), "node-maintenance"))
