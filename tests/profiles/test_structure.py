"""The stages stay readable: no function takes more than six parameters, apart from those of commands."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import reconciler

ROOM = Path(reconciler.__file__).parent
STAGES = ("run.py", "passes", "profiles", "report", "features", "drain", "sources")
MOST = 6


def files() -> list[Path]:
    """Every file of a stage."""
    found = []
    for stage in STAGES:
        place = ROOM / stage
        assert place.exists(), stage
        found += sorted(place.rglob("*.py")) if place.is_dir() else [place]
    # A command has a parameter for each of its options.
    return [file for file in found if file.name != "commands.py"]


@pytest.mark.heavy
def test_no_function_of_a_stage_takes_more_than_six_parameters() -> None:
    counted, wide = 0, []
    for file in files():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                given = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                given = given[1:] if given[:1] in (["self"], ["cls"]) else given
                counted += 1
                if len(given) > MOST:
                    wide.append(f"{file.relative_to(ROOM)} {node.name}: {len(given)}")

    assert counted > 400
    assert wide == []
