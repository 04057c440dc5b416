"""docs/settings.md is what the schema generates, and the examples in the docs are valid."""

import re
from pathlib import Path

import pytest

from reconciler.model.event import Kind
from reconciler.model.record import State
from reconciler.settings import reference
from reconciler.settings.load import parse_settings
from reconciler.settings.policies import CONDITION_DEFAULT
from reconciler.settings.schema import Settings
from reconciler.settings.tree import keys

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE = (DOCS / "settings.md").read_text(encoding="utf-8")


def headings() -> list[str]:
    """Return the headings that are keys."""
    return re.findall(r"^#+ `(.+)`$", PAGE, re.MULTILINE)


def documented(name: str) -> str | None:
    """Return how the page calls a key: kinds share a heading, and overrides repeat what stands above them."""
    if re.match(r"overrides\[\]\.(events|conditions)\.", name):
        return None
    name = re.sub(rf"^events\.({'|'.join(Kind)})\b", "events.<Kind>", name)
    name = re.sub(rf"^(profiles\.profiles\[\])\.({'|'.join(State)})\b", r"\1.<state>", name)
    return name.replace("conditions.*", "conditions.<Type>")


def test_the_page_is_what_the_schema_generates() -> None:
    assert reference.update(PAGE) == PAGE, "run `nox -s docs`"


def test_only_what_follows_the_marker_is_generated() -> None:
    assert reference.update(f"by hand\n{reference.MARKER}\nold\n").startswith(
        f"by hand\n{reference.MARKER}\n\n## `apiVersion`\n"
    )
    with pytest.raises(ValueError, match="no line"):
        reference.update("by hand\n")


def test_a_condition_has_the_defaults_of_conditions() -> None:
    section = PAGE.partition("### `conditions.<Type>.outsideWindow`")[2].partition("###")[0]

    assert f"- Default: `{CONDITION_DEFAULT.outside_window}`" in section


def test_every_key_has_its_heading_and_every_heading_its_key() -> None:
    expected = dict.fromkeys(filter(None, (documented(key.name) for key in keys(Settings))))

    assert headings() == list(expected)


def test_every_key_says_what_it_is() -> None:
    assert [key.name for key in keys(Settings) if not key.field.description] == []


def test_the_table_of_kinds_has_the_defaults() -> None:
    for kind in Kind:
        policy = Settings().event_policy(kind, {})
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| {kind} |"))
        assert f"| {str(policy.drain).lower()} |" in row
        assert f"| {policy.outside_window} | {policy.empty_dir} | {policy.unmanaged_pods} |" in row


@pytest.mark.parametrize("page", ["settings.md", "windows.md", "workflows.md", "approvals.md", "notices.md"])
def test_the_examples_are_right(page: str) -> None:
    examples = re.findall(r"```yaml\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)

    # tests/docs has the instances, and tests/real/manifests the patch of a kustomization.
    settings = [one for one in examples if not one.startswith(("- type:", "patches:"))]
    assert settings
    for example in settings:
        parse_settings(example, page)
