"""YAML 1.2: what plain words are, where keys stand, and what is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.settings.yaml import read_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("22:00", "22:00", id="a time is not a number to the base of sixty"),
        pytest.param("no", "no", id="no is a word"),
        pytest.param("on", "on", id="on is a word"),
        pytest.param("2026-11-26", "2026-11-26", id="a date is text"),
        pytest.param("true", True, id="true is true"),
        pytest.param("~", None, id="a tilde is null"),
        pytest.param("", None, id="nothing is null"),
        pytest.param("'true'", "true", id="quotes make text"),
        pytest.param('"5"', "5", id="of numbers, too"),
        pytest.param("!!str 5", "5", id="as does the tag"),
        pytest.param("! 5", "5", id="or the empty tag"),
        pytest.param("5", 5, id="a number"),
        pytest.param("010", 10, id="no octal by a leading nought"),
        pytest.param("0o10", 8, id="octal as YAML 1.2 has it"),
        pytest.param("0x10", 16, id="hexadecimal"),
        pytest.param("1_000", "1_000", id="no underscores in numbers"),
        pytest.param("1e3", 1000.0, id="a float"),
        pytest.param("-.inf", float("-inf"), id="infinity"),
        pytest.param("10%", "10%", id="a percentage is text"),
        pytest.param("|\n  a\n  b\n", "a\nb\n", id="a block is text"),
    ],
)
def test_plain_words_are_what_yaml_1_2_says(text: str, value: object) -> None:
    document = read_yaml(f"key: {text}")

    assert not document.mistakes
    assert document.value == {"key": value}
    assert type(document.value["key"]) is type(value)


def test_every_key_and_entry_has_its_place() -> None:
    document = read_yaml("windows:\n- name: a\n  days: [mon,\n    tue]\n- {name: b}\n")

    assert document.places[("windows",)] == (1, 1)
    assert document.places[("windows", 0)] == (2, 3)
    assert document.places[("windows", 0, "days")] == (3, 3)
    assert document.places[("windows", 0, "days", 1)] == (4, 5)
    assert document.places[("windows", 1, "name")] == (5, 4)
    assert document.place(("windows", 0, "end", "missing")) == (2, 3)


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        pytest.param("a: 1\na: 2", (2, 1), "duplicate; the first one is on line 1", id="a key stands once"),
        pytest.param("a: {b: 1, b: 2}", (1, 11), "duplicate", id="also in braces"),
        pytest.param("a: 1\n---\nb: 2", (2, 1), "a second document", id="one document per file"),
        pytest.param("a: &x 1\nb: *x", (1, 4), "anchors", id="no anchors"),
        pytest.param("a: *x", (1, 4), "anchors", id="no aliases"),
        pytest.param("&x [*x]", (1, 1), "anchors", id="so no recursion"),
        pytest.param("a: !!int 5", (1, 4), "tags", id="no tags that make something else of it"),
        pytest.param("a: !!python/name:os.system x", (1, 4), "tags", id="least of all Python's"),
        pytest.param("a: [", (2, 1), "not YAML", id="brackets that stay open"),
        pytest.param("a: \x01", (1, 4), "not YAML", id="control characters"),
        pytest.param("? [a]\n: b", (1, 3), "plain text", id="keys are text"),
        pytest.param("[" * 2000, (1, 42), "nested deeper", id="bottomless nesting"),
        pytest.param("a" * 1_000_001, (1, 1), "longer", id="endless files"),
    ],
)
def test_what_is_refused_says_where_and_why(text: str, place: tuple[int, int], said: str) -> None:
    found, mistake = read_yaml(text).mistakes[0]

    assert said in mistake.message
    assert found == place


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "---\na: 1\n---\n", "a: 1\n...\n"])
def test_an_empty_document_is_no_mistake(text: str) -> None:
    assert not read_yaml(text).mistakes


@settings(deadline=None)
@given(st.text(alphabet="ab:-[]{}&*!|>'\"#%@, \n\t0?~<=\\", max_size=60))
def test_no_text_makes_it_crash(text: str) -> None:
    read_yaml(text)


def test_a_billion_laughs_are_refused_at_the_first() -> None:
    bomb = "a: &a [x]\n" + "".join(
        f"{b}: &{b} [*{a},*{a}]\n" for a, b in zip("abcdefg", "bcdefgh", strict=True)
    )

    assert "anchors" in read_yaml(bomb).mistakes[0][1].message
