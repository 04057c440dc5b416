"""Templates of notices: checked when the settings are loaded, and limited when they run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconciler.features.notices.templates import LARGEST, TemplateFailed, mistake_in, rendered

NEVER: Callable[[], bool] = lambda: False  # noqa: E731


def after(looks: int) -> Callable[[], bool]:
    """The time is over after so many looks at the clock."""
    left = iter(range(looks))
    return lambda: next(left, None) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{{ title", "line 1 of the template: "),
        ("\n{{ title|loud }}", "line 2 of the template: No filter named 'loud'."),
        ("{{ node }}", "the template uses node; it can use cluster, title, text, lines, messages"),
        ("{% include 'x' %}{{ secrets }}", "the template uses secrets"),
        ("{{ " + "(" * 3000, "the template"),
    ],
)
def test_a_wrong_template_is_a_mistake_in_the_settings(text: str, why: str) -> None:
    assert why in mistake_in(text)


def test_a_template_makes_text_of_the_messages() -> None:
    text = "{% for one in messages %}{{ one.node }}: {{ one.topic|upper }}\n{% endfor %}"
    assert mistake_in(text) == ""

    assert rendered(text, {"messages": [{"node": "a", "topic": "Missed"}]}, NEVER) == "a: MISSED\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{{ messages.nothing }}", "UndefinedError"),
        ("{{ title.__class__.__mro__ }}", "SecurityError"),
        ("{{ messages.append(1) }}", "SecurityError"),
        ("{{ 'x' * 1000000000 }}", "too large"),
        ("{{ 9 ** 9 ** 9 }}", "too large"),
        ("{% for i in range(99999) %}xxxxxxxxxx{% endfor %}", f"more than {LARGEST} characters"),
        ("{{ range(10000000)|list }}", "OverflowError"),
    ],
)
def test_a_template_that_goes_too_far_fails(text: str, why: str) -> None:
    assert mistake_in(text) == ""

    with pytest.raises(TemplateFailed, match=why):
        rendered(text, {"messages": [], "title": "x"}, NEVER)


def test_a_template_that_takes_too_long_is_stopped() -> None:
    text = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"

    with pytest.raises(TemplateFailed, match="longer than 1 seconds"):
        rendered(text, {}, after(3))
