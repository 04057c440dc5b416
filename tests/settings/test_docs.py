"""docs/settings.md is what the schema generates, and the examples in the docs are valid."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.model.event import Kind
from reconciler.model.record import State
from reconciler.settings import reference
from reconciler.settings.load import parse_settings
from reconciler.settings.mistakes import keys
from reconciler.settings.policies import CONDITION_DEFAULT
from reconciler.settings.schema import whole_settings

DOCS = Path(__file__).parent.parent.parent / "docs"
EXAMPLES = [DOCS / f"{name}.md" for name in ("settings", "windows", "workflows", "approvals", "notices")]
"""Pages with examples of settings; a page goes with its feature."""

PAGE = (DOCS / "settings.md").read_text(encoding="utf-8")


def described() -> Iterator[str]:
    """Yield the keys that have a heading, a line, or a part of one."""
    for line in re.findall(r"^(?:## |- )`.*$", PAGE.partition(reference.MARKER)[2], re.MULTILINE):
        names, shared, _ = line.partition(": as in `")
        found = re.findall(r"(?:## |- |, )`([^`]+)`", names)
        yield from found if shared else found[:1]


def documented(name: str) -> str | None:
    """Return how the page calls a key: kinds share a line, and overrides repeat what stands above them."""
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
    assert f"`conditions.<Type>.outsideWindow` (`{CONDITION_DEFAULT.outside_window}`)" in PAGE


def test_every_key_is_described_and_every_description_has_its_key() -> None:
    expected = dict.fromkeys(filter(None, (documented(key.name) for key in keys(whole_settings()))))

    assert list(described()) == list(expected)


def test_a_key_with_a_default_in_words_has_its_type() -> None:
    assert "- `budget.perZone` (limit; no limit): " in PAGE
    assert "- `drain.timeout` (`30m`): " in PAGE
    assert "- `drain.rules[].name` (required): " in PAGE


def test_sections_with_the_same_keys_share_their_descriptions() -> None:
    assert "`notAllowed[].timeZone`, `notAllowed[].name`: as in `windows[]`.\n" in PAGE
    assert "- `notAllowed[].absolute` (`false`): " in PAGE


def test_every_key_says_what_it_is() -> None:
    assert [key.name for key in keys(whole_settings()) if not key.field.description] == []


def test_the_table_of_kinds_has_the_defaults() -> None:
    for kind in Kind:
        policy = whole_settings()().policies({}).of_kind(kind)
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| {kind} |"))
        assert f"| {str(policy.drain).lower()} |" in row
        assert f"| {policy.outside_window} | {policy.empty_dir} | {policy.unmanaged_pods} |" in row


@pytest.mark.parametrize("page", [page for page in EXAMPLES if page.exists()], ids=lambda page: page.name)
def test_the_examples_are_right(page: Path) -> None:
    examples = re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)

    # tests/docs has the instances, and tests/real/manifests the patch of a kustomization.
    settings = [text for text in examples if not text.startswith(("- type:", "patches:"))]
    assert settings
    for text in settings:
        parse_settings(text, page.name)
