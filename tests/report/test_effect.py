"""What other settings change, in numbers, with the names of the nodes that get worse."""

from __future__ import annotations

from reconciler.model.problems import Unseen
from reconciler.report.effect import Comparison, Effect, effect_lines


def named(*names: str) -> frozenset[str]:
    return frozenset(names)


def test_each_number_is_said_before_and_after_with_the_nodes_that_get_worse() -> None:
    before = Effect(500, named("a", "b", "c"), named("a"), named("d"))
    after = Effect(2, named("a", "b"), named("a", "b"), named("c", "d"))

    assert list(effect_lines(before, after)) == [
        "nodes managed: 500 before, 2 after",
        "cases: 3 before, 2 after",
        "misses: 1 before, 2 after (new: b)",
        "unguarded nodes: 1 before, 2 after (new: c)",
    ]
    assert list(effect_lines(after, before))[2:] == [
        "misses: 2 before, 1 after",
        "unguarded nodes: 2 before, 1 after",
    ]


def test_without_others_there_are_the_numbers_alone() -> None:
    assert list(effect_lines(None, Effect(3, named("a"), named("a")))) == [
        "nodes managed: 3",
        "cases: 1",
        "misses: 1 (a)",
    ]


def test_a_comparison_has_the_numbers_for_programs_and_says_what_could_not_be_seen() -> None:
    before, after = Effect(5, named("a", "b"), named("a")), Effect(4, named("b"), unguarded=named("a"))
    hidden = Unseen("the pods", "list pods", "whether drains end is not known")

    known, alone = Comparison(before, after, (hidden,)), Comparison(None, after)

    assert known.values == {
        "managed": {"before": 5, "after": 4},
        "cases": {"before": 2, "after": 1},
        "misses": {"before": 1, "after": 0},
        "unguarded": {"before": 0, "after": 1},
    }
    assert alone.values["cases"] == {"before": None, "after": 1}
    assert known.lines[0] == "nodes managed: 5 before, 4 after"
    assert known.lines[-1].startswith("could not see: the pods")
