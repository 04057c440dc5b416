"""`hooks`: what is refused, and which hooks a step has."""

from __future__ import annotations

import pytest

from reconciler.features.hooks.settings import HOOKS
from reconciler.model.errors import SettingsError
from reconciler.model.steps import HeldStep
from reconciler.settings.explain import explain_settings
from reconciler.settings.load import parse_settings

JOB = "job: {spec: {template: {spec: {containers: [{name: a, image: b}]}}}}"


def mistake(entries: str) -> str:
    with pytest.raises(SettingsError) as found:
        parse_settings(f"hooks:\n  preDrain: {entries}\n", "x")
    return str(found.value)


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ("[{name: a}]", "hooks.preDrain[0].name: names a hook that needs either `job` or `webhook`"),
        (f"[{{{JOB}}}]", "name"),
        (f"[{{name: A b, {JOB}}}]", "is not a name of lower-case letters, digits and '-'"),
        (f"[{{name: {'a' * 41}, {JOB}}}]", "at most 40"),
        (f"[{{name: a, {JOB}}}, {{name: a, {JOB}}}]", "is the name of another hook of this step: a"),
        (f"[{', '.join(f'{{name: a{n}, {JOB}}}' for n in range(21))}]", "has 21 hooks, and 20 is the limit"),
        (f"[{{name: a, {JOB}, webhook: {{url: 'https://x/'}}}}]", "needs either `job` or `webhook`"),
        ("[{name: a, webhook: {url: 'http://169.254.169.254/'}}]", "is a link-local address"),
        ("[{name: a, webhook: {url: 'https://x/', timeout: 2m}}]", "is not between 1s and 1m"),
        ("[{name: a, job: {spec: 1}}]", "1 is not the spec of a Job"),
        ("[{name: a, job: {spec: {template: {}}}}]", "has no template.spec.containers"),
        (
            "[{name: a, job: {spec: {template: {spec: {containers: [1]}}}}}]",
            "has no template.spec.containers",
        ),
        ("[{name: a, job: {spec: {template: {spec: {containers: []}}}}}]", "has no container"),
        (f"[{{name: a, job: {{spec: {{x: {'y' * 40_000}}}}}}}]", "is longer than 32768 characters"),
    ],
)
def test_a_mistake_says_what_to_change(entries: str, why: str) -> None:
    assert why in mistake(entries)


def test_a_step_has_its_own_hooks_and_their_selectors_keep_their_labels() -> None:
    entry = f"{{name: a, nodeSelector: {{disk: local}}, {JOB}}}"
    settings = parse_settings(f"hooks: {{postDrain: [{entry}]}}", "x")
    found = HOOKS.of(settings)

    assert [one.name for one in found.of(HeldStep.POST_DRAIN)] == ["a"]
    assert found.of(HeldStep.PRE_DRAIN) == found.of(HeldStep.PRE_UNCORDON) == ()
    assert "disk" in settings.label_keys()


def test_hooks_are_explained_without_the_url_of_a_webhook() -> None:
    text = """hooks:
  timeout: 15m
  preDrain: [{name: leader, webhook: {url: 'https://example.com/SECRET'}, nodeSelector: {disk: local}}]
  preUncordon: [{name: smoke, job: {spec: {template: {spec: {containers: [{name: a, image: b}]}}}}}]
"""

    assert explain_settings(parse_settings(text, "f")).partition("Hooks\n")[2] == (
        "  pre-drain.leader (webhook) holds the drain, on nodes with disk=local.\n"
        "  pre-uncordon.smoke (job) holds the uncordon.\n"
        "  Each for 15m at most.\n"
    )
    assert "hold nothing" in explain_settings(parse_settings(text.replace("15m", "0s"), "f"))
