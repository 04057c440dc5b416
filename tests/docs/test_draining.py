"""docs/draining.md says what is so: its settings are good, and do what the page says."""

from __future__ import annotations

import re
from pathlib import Path

from reconciler.drain import judge
from reconciler.model.pod import DO_NOT_DISRUPT
from reconciler.model.values import replace
from reconciler.profiles.orders import drain_options
from reconciler.settings.load import parse_settings
from tests.support.builders import NOW, known, pod

PAGE = (Path(__file__).parents[2] / "docs" / "draining.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_the_rule_of_the_page_evicts_pods_that_karpenter_does_not() -> None:
    (rules,) = (parse_settings(block, "maintenance.yaml") for block in BLOCKS)
    options = drain_options((known(),), rules, rules.policies({}))
    asking = replace(pod(), annotations={DO_NOT_DISRUPT: "true"})

    assert judge(asking, options, now=NOW).action == "evict"
    assert judge(replace(asking, namespace="chat"), options, now=NOW).action == "wait"
