"""Rules of hooks, with the tests that fail."""

from __future__ import annotations

from tests.laws.mutant import Mutant

_DEFAULT = "reconciler/engine/profiles/default.yaml"
_DRAINING, _DECIDE = "reconciler/decide/draining.py", "reconciler/decide/hooks.py"
_ENGINE = "reconciler/engine/hooks.py"
_HOOKS, _PODS = "tests/decide/test_hooks.py", "tests/drainer/test_pod_hooks.py"

_UNCORDON = "eventsGone && selfServiceDone && nodeReady && leftByRemediator && machineStays"

HOOK_RULES = (
    Mutant(
        0,
        "a pre-drain hook holds the drain",
        _DRAINING,
        "    if begun.hooked is not None:\n        return begun.hooked\n",
        "",
        _HOOKS,
    ),
    Mutant(
        0,
        "a pre-drain hook holds the end of the drain of an empty node",
        _DRAINING,
        "not running(drained) and begun.hooked is None:",
        "not running(drained):",
        _HOOKS,
    ),
    Mutant(
        0,
        "the time limit of a drain begins after its hooks",
        _DRAINING,
        "    if begun.hooked is None and was_held(begun.told, drain):",
        "    if False:",
        _HOOKS,
    ),
    Mutant(
        0,
        "a hook that has timed out is reported once",
        _DRAINING,
        "        noted = told(noted or record)\n",
        "        noted = noted or record\n",
        _HOOKS,
    ),
    Mutant(
        0,
        "a hook never holds a drain beyond the latest start",
        _ENGINE,
        "    if entry.id.step is HookStep.PRE_DRAIN:\n",
        "    if False:\n",
        _HOOKS,
    ),
    Mutant(
        0,
        "an uncordon has no latest start",
        _ENGINE,
        "    if entry.id.step is HookStep.PRE_DRAIN:\n",
        "    if True:\n",
        "tests/checks/test_pre_uncordon_hooks_done.py",
    ),
    Mutant(
        0,
        "what follows a drain waits for no hook after the date of the event",
        _ENGINE,
        "    if entry.id.step is HookStep.POST_DRAIN:\n",
        "    if False:\n",
        "tests/checks/test_post_drain_hooks_done.py",
    ),
    Mutant(
        0,
        "a hook that begins after the date of the event has its whole time",
        _ENGINE,
        "if date is not None and date > entry.since]",
        "if date is not None]",
        "tests/checks/test_post_drain_hooks_done.py",
    ),
    Mutant(
        0,
        "a hook that appears again has a time limit of its own",
        _ENGINE,
        "if one.id in present and _still_counts(one, steps)]",
        "if _still_counts(one, steps)]",
        _HOOKS,
    ),
    Mutant(
        0,
        "a pre-uncordon hook begins when nothing else holds the uncordon",
        _DECIDE,
        "    if _CHECKS[HookStep.PRE_UNCORDON].name in walked.alone:\n",
        "    if True:\n",
        _HOOKS,
    ),
    Mutant(
        0,
        "the uncordon waits for hooks",
        _DEFAULT,
        f"{_UNCORDON} && postDrainHooksDone && preUncordonHooksDone",
        _UNCORDON,
        _HOOKS,
    ),
    Mutant(
        0,
        "the replacement waits for hooks",
        _DEFAULT,
        "replaceDue && notStopped && postDrainHooksDone",
        "replaceDue && notStopped",
        "tests/decide/test_replacing.py",
    ),
    Mutant(
        12,
        "an event waits for the hooks of all of its nodes",
        "reconciler/decide/acknowledging.py",
        '    return f"node {names[0]} has a hook: {hooks[0]}" if hooks else ""\n',
        '    return ""\n',
        "tests/decide/test_acknowledging.py",
    ),
    Mutant(
        18,
        "the hook of a pod holds it for a limited time",
        "reconciler/eviction/filters.py",
        "    until = limit.ends(timedelta())\n    if around.now < until:\n",
        "    until = limit.ends(timedelta())\n    if True:\n",
        _PODS,
    ),
    Mutant(
        0,
        "the hook of a pod holds its eviction",
        "reconciler/eviction/filters.py",
        "    _unmanaged,\n    _hook,\n",
        "    _unmanaged,\n",
        _PODS,
    ),
    Mutant(
        9,
        "a run has the same name after a restart",
        "reconciler/clients/kubernetes/hook_jobs.py",
        "        except Conflict:\n",
        "        except NotFound:\n",
        "tests/real/manifests/test_hooks.py",
    ),
    Mutant(
        9,
        "a hook that has begun is not begun again",
        _ENGINE,
        "if one.id.kind is HookKind.ANNOTATION or one.end is not None or not absent:",
        "if one.id.kind is HookKind.ANNOTATION or one.end is not None:",
        "tests/decide/test_configured_hooks.py",
    ),
    Mutant(
        0,
        "a hook that is done lets its step go on",
        _ENGINE,
        "    if _is_done(entry):\n        return replace(entry, end=HookEnd.DONE)\n",
        "",
        "tests/decide/test_configured_hooks.py",
    ),
    Mutant(
        0,
        "a pass gives up after hooks that can't be run",
        "reconciler/act.py",
        "if hooks is None or failed >= _MOST_FAILED:",
        "if hooks is None:",
        "tests/decide/test_configured_hooks.py",
    ),
    Mutant(
        10,
        "a hook of a node that could not be written is not run",
        "reconciler/act.py",
        "            if node.node in refused:\n                continue\n            if hooks is None",
        "            if hooks is None",
        "tests/decide/test_configured_hooks.py",
    ),
)
