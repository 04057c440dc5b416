"""What differs between two texts of the settings, in words and line by line."""

from __future__ import annotations

import pytest

from reconciler.features.revisions.changes import LINES, changed_keys, in_words, unified


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ("mode: Enforce", "mode: Enforce\nnodeSelector: a=b", ("nodeSelector added",)),
        ("mode: Enforce\nnotify: []", "mode: Enforce", ("notify removed",)),
        ("mode: Enforce", "mode: Observe", ("mode changed",)),
        (
            "budget: {a: 1, b: 2}",
            "budget: {a: 3, c: 2}",
            ("budget.a changed", "budget.b removed", "budget.c added"),
        ),
        ("drain: {rules: {a: {b: 1}}}", "drain: {rules: {a: {b: 2}}}", ("drain.rules changed",)),
        ("drain: {a: 1}", "drain: none", ("drain changed",)),
        ("a: 1 # one", "a: 1 # two", ()),
        ("[a]", "a: 1", ("a added",)),
        ("a: [", "a: {", ()),
        ("", "", ()),
    ],
)
def test_keys_at_the_top_and_one_level_below_are_named(
    before: str, after: str, changes: tuple[str, ...]
) -> None:
    assert changed_keys(before.encode(), after.encode()) == changes


def test_a_sentence_names_ten_changes_and_counts_the_rest() -> None:
    changes = tuple(f"key{number} added" for number in range(13))

    assert in_words(changes) == ", ".join(changes[:10]) + ", and 3 more"
    assert in_words(changes[:10]) == ", ".join(changes[:10])
    assert in_words(()) == "only comments or the layout changed"


def test_a_key_of_any_length_is_cut() -> None:
    (change,) = changed_keys(b"", b"? " + b"k" * 1000 + b"\n: 1\n")

    assert len(change) < 100


def test_a_diff_shows_each_line() -> None:
    lines = unified(b"a: 1\nb: 2\n", b"a: 1\nb: 3\n", ("revision 1", "present"))

    assert lines[:2] == ("--- revision 1", "+++ present")
    assert lines[-2:] == ("-b: 2", "+b: 3")
    assert unified(b"a: 1\n", b"a: 1\n", ("x", "y")) == ()
    assert unified(b"\n" * LINES, b"\n" * LINES + b"a", ("x", "y")) == (
        "x and y differ; more than 10000 lines are not compared one by one",
    )
    assert unified(b"\n" * 2 * LINES, b"\n" * 2 * LINES, ("x", "y")) == ()
    assert unified(b"a: 1\n", b"a: 1\r\n", ("x", "y")) == ("only the ends of lines differ",)
