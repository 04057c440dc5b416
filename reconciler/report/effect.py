"""What other settings change: how many nodes are managed, cases and misses, before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from reconciler.model.limits import first_of
from reconciler.model.plan import Plan
from reconciler.model.problems import Unseen
from reconciler.report.standing import Standing, standing
from reconciler.report.values import unseen_lines


class Effect(Struct, frozen=True):
    """What settings do with the nodes of a cluster: how many are managed, and the names of others.

    `cases` have a schedule, `missed` will be missed, and `unguarded` have maintenance that nobody guards.
    """

    managed: int
    cases: frozenset[str] = frozenset()
    missed: frozenset[str] = frozenset()
    unguarded: frozenset[str] = frozenset()


def effect_of(plan: Plan) -> Effect:
    """Return what the settings of a plan do."""
    return Effect(
        plan.managed,
        frozenset(node.node for node in plan.nodes if node.schedule is not None),
        frozenset(node.node for node in plan.nodes if standing(node) is Standing.WILL_BE_MISSED),
        frozenset(node.node for node in plan.nodes if node.unguarded is not None),
    )


class Comparison(Struct, frozen=True):
    """What settings do in the place of others: `before` is None if there are none to compare with.

    `unseen` is what could not be read for it.
    """

    before: Effect | None
    after: Effect
    unseen: tuple[Unseen, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """A line for each number, and for each thing that could not be read."""
        return (*effect_lines(self.before, self.after), *unseen_lines(self.unseen))

    @property
    def values(self) -> Mapping[str, Mapping[str, int | None]]:
        """The numbers before (None: not known) and after."""
        before, after = None if self.before is None else _numbers(self.before), _numbers(self.after)
        return {
            name: {"before": None if before is None else before[name], "after": number}
            for name, number in after.items()
        }


def _numbers(effect: Effect) -> dict[str, int]:
    return {
        "managed": effect.managed,
        "cases": len(effect.cases),
        "misses": len(effect.missed),
        "unguarded": len(effect.unguarded),
    }


def effect_lines(before: Effect | None, after: Effect) -> Iterator[str]:
    """Yield a line for each number, before (None: not known) and after; nodes that get worse are named."""

    def line(what: str, first: int | None, then: int, new: frozenset[str] = frozenset()) -> str:
        counted = f"{then}" if first is None else f"{first} before, {then} after"
        named = f" ({'new: ' if first else ''}{first_of(sorted(new))})" if new else ""
        return f"{what}: {counted}{named}"

    nothing = Effect(0) if before is None else before
    yield line("nodes managed", None if before is None else before.managed, after.managed)
    yield line("cases", None if before is None else len(before.cases), len(after.cases))
    missed, unguarded = after.missed - nothing.missed, after.unguarded - nothing.unguarded
    yield line("misses", None if before is None else len(before.missed), len(after.missed), missed)
    if after.unguarded or nothing.unguarded:
        known = None if before is None else len(before.unguarded)
        yield line("unguarded nodes", known, len(after.unguarded), unguarded)
