"""Rules about what clouds say and accept, each with the test file that fails without it."""

from __future__ import annotations

from tests.laws.mutant import Mutant

CLOUD_RULES = (
    Mutant(
        0,
        "an event of EC2 is a plan until it starts",
        "reconciler/sources/aws.py",
        "        plan=PlatformPlan(until=event.not_after) if planned else None,\n",
        "",
        "tests/sources/test_aws.py",
    ),
    Mutant(
        0,
        "an event of EC2 without a date is no plan",
        "reconciler/sources/aws.py",
        "    planned = event.not_before is not None and not begun\n",
        "    planned = not begun\n",
        "tests/sources/test_aws.py",
    ),
    Mutant(
        0,
        "events of EC2 are left to Karpenter",
        "reconciler/settings/sections/others.py",
        "event.kind is Kind.PREEMPT or (AWS in event.sources and REQUEST not in event.sources)",
        "event.kind is Kind.PREEMPT",
        "tests/sources/test_aws.py",
    ),
    Mutant(
        0,
        "a request is not left to Karpenter because EC2 reports the same event",
        "reconciler/settings/sections/others.py",
        "(AWS in event.sources and REQUEST not in event.sources)",
        "AWS in event.sources",
        "tests/sources/test_aws.py",
    ),
    Mutant(
        0,
        "a pool without an ETag is not scaled",
        "reconciler/clients/azure/agent_pools.py",
        "        if not seen.etag:\n",
        "        if False:\n",
        "tests/clients/azure/test_agent_pools.py",
    ),
    Mutant(
        0,
        "only the count of a pool is sent",
        "reconciler/clients/azure/agent_pools.py",
        '    sent = {key: found[key] for key in ("type", "mode") if found.get(key)}\n',
        "    sent = dict(found)\n",
        "tests/clients/azure/test_agent_pools.py",
    ),
    Mutant(
        0,
        "a pool of single VMs with an autoscaler is not scaled",
        "reconciler/clients/azure/agent_pools.py",
        'found.get("enableAutoScaling") or (profile.get("scale") or {}).get("autoscale")',
        'found.get("enableAutoScaling")',
        "tests/clients/azure/test_agent_pools.py",
    ),
)
