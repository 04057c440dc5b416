"""`-o yaml` is the document of `-o json`: no text in it controls the terminal or becomes another value."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
import yaml

from jobs.runtime.output import for_programs, machine_text, width

HOSTILE = "\x1b[2J", "\u202enode", "\u2028", "\x85", "\udc00", "line\nline", "\U000e0001", "tab\t", "\r"
LOOKS_LIKE_ANOTHER_VALUE = "no", "y", "1e3", "12e45", "0o7", "2026-11-21T12:00:00Z", "", "null", "- a", "a: b"


@pytest.mark.parametrize("text", [*HOSTILE, *LOOKS_LIKE_ANOTHER_VALUE, "Zürich 🚀", "word " * 100])
def test_each_text_is_the_same_in_yaml(text: str) -> None:
    document = {"list": [text, {text: text}], "nested": {"first": {"a": text}}}

    written = machine_text(json.dumps(document), "yaml")

    assert yaml.safe_load(written) == document
    assert all(line.isprintable() for line in written.splitlines())


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"z": 1, "a": None, "m": [True, 1.5, 30.0, {}, []]}, id="an object"),
        pytest.param([], id="an empty list"),
    ],
)
def test_each_value_and_the_order_of_keys_stay(value: Any) -> None:
    written = machine_text(json.dumps(value), "yaml")

    assert json.dumps(yaml.safe_load(written)) == json.dumps(value)
    assert written.endswith("\n")


@pytest.mark.parametrize("text", ["1e3", "12e45", "0o7", "y", "N"])
def test_a_text_that_other_readers_of_yaml_take_for_a_value_has_quotes(text: str) -> None:
    assert machine_text(json.dumps({"hash": text}), "yaml") == f"hash: '{text}'\n"


def test_a_text_is_one_line_so_that_grep_finds_it() -> None:
    assert machine_text(json.dumps(["word " * 100 + "end"]), "yaml").count("\n") == 1


def test_json_stays_as_it_is_and_ends_with_one_line_feed() -> None:
    assert machine_text('{\n  "a": "ü"\n}', "json") == machine_text('{\n  "a": "ü"\n}\n', "json")
    assert machine_text('{"b": 1,  "a": 2}', "json") == '{"b": 1,  "a": 2}\n'


def test_programs_read_json_and_yaml_only() -> None:
    assert [one for one in ("text", "wide", "json", "yaml", "markdown") if for_programs(one)] == [
        "json",
        "yaml",
    ]


def test_wide_has_no_width_on_a_terminal_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")

    assert width("text") == 60
    assert width("wide") is None
