"""The rules of slots, and of the turn of our own node."""

from __future__ import annotations

from tests.laws.mutant import Mutant

_ONE, _CORE = "reconciler/drainer/one.py", "reconciler/drainer/core.py"
_DRAINING = "reconciler/decide/draining.py"
_LAW = "tests/laws/test_law_17_slots_are_given_on.py"
_SLOTS = "tests/drainer/test_slots.py"
_DECIDED = "tests/decide/test_slots.py"

SLOT_RULES = (
    Mutant(17, "no more drains than slots evict", _CORE, "return used < slots", "return True", _LAW),
    Mutant(
        17,
        "a blocked drain gives its slot back",
        _ONE,
        "self.holds_slot = self.holds_slot and (goes_on or kept or asks)",
        "pass",
        _LAW,
    ),
    Mutant(
        17,
        "a slot that becomes free is taken at once",
        _CORE,
        "        self._dirty |= self._next_in_line()\n",
        "",
        _SLOTS,
    ),
    Mutant(
        17,
        "the first in line is served first",
        _CORE,
        "            used += 1\n        return used < slots",
        "            pass\n        return used < slots",
        _SLOTS,
    ),
    Mutant(
        17,
        "a pod that is late keeps no slot",
        _ONE,
        "leaves = self.blocked_at is not None and not self._due(self.blocked_at, now)",
        "leaves = self.blocked_at is not None",
        _LAW,
    ),
    Mutant(
        17,
        "a drain keeps its slot between two pods",
        _ONE,
        "(goes_on or kept or asks)",
        "(goes_on or asks)",
        _SLOTS,
    ),
    Mutant(
        17,
        "an order without a limit needs no slot",
        _ONE,
        "if self.order.slots is None or self.holds_slot:",
        "if self.holds_slot:",
        _SLOTS,
    ),
    Mutant(
        17,
        "a blocked drain leaves its slot to the next node",
        _DRAINING,
        "if order.slots is None or _yields(drained):",
        "if order.slots is None:",
        _DECIDED,
    ),
    Mutant(
        17,
        "a blocked drain does not count",
        _DRAINING,
        "progress.drains += order.slots is not None and not _yields(drained)",
        "progress.drains += order.slots is not None",
        _DECIDED,
    ),
    Mutant(
        17,
        "a drain with a slot is not stopped for another",
        _DRAINING,
        "held = 0 if holds_slot(drained) else len(progress.holding)",
        "held = 0",
        _DECIDED,
    ),
    Mutant(
        17,
        "what is lost anyway needs no slot",
        _DRAINING,
        "(own or event.event.kind in settings.budget.exempt)",
        "own",
        _DECIDED,
    ),
    Mutant(
        17,
        "fewer attempts come first",
        "reconciler/decide/__init__.py",
        "one.node.name == own, one.attempts)",
        "one.node.name == own)",
        _DECIDED,
    ),
    Mutant(
        17,
        "our own node comes last among those in maintenance",
        "reconciler/decide/__init__.py",
        "one.node.name == own, one.attempts)",
        "one.attempts)",
        _DECIDED,
    ),
    Mutant(
        8,
        "the moment at which a slot becomes free is a moment of change",
        _DRAINING,
        "return Hold(node.name, HoldCode.DRAIN_SLOT, reason, progress.slot_free_at)",
        "return Hold(node.name, HoldCode.DRAIN_SLOT, reason)",
        _DECIDED,
    ),
    Mutant(
        8,
        "the moment at which a drain is stuck is a moment of change",
        _DRAINING,
        "min((at for at in (until, progress.stuck_at) if at), default=None)",
        "until",
        _DECIDED,
    ),
    Mutant(
        17,
        "our own node does not wait for a stuck drain",
        _DRAINING,
        "return not held and not is_stuck(drained, recorded, now)",
        "return not held",
        _DECIDED,
    ),
    Mutant(
        17,
        "our own node waits for no drain that something else holds",
        _DRAINING,
        "return not held and not is_stuck(drained, recorded, now)",
        "return not is_stuck(drained, recorded, now)",
        _DECIDED,
    ),
    Mutant(
        17,
        "our own node waits for others only until its deadline",
        _DRAINING,
        "if until is None or until > context.now:",
        "if True:",
        _DECIDED,
    ),
    Mutant(
        17,
        "others have a head start at the deadline of our own node",
        _DRAINING,
        "return shifted(progress.begun or now, HEAD_START)",
        "return now",
        _DECIDED,
    ),
    Mutant(
        17,
        "our own node starts at its deadline",
        "reconciler/checks/others_first.py",
        "if any(cannot_wait(one, situation.settings, situation.now) for one in situation.judged):",
        "if False:",
        "tests/checks/test_others_first.py",
    ),
)
