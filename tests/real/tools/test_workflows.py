"""actionlint reads the workflows as GitHub does: keys, expressions, contexts and the inputs of actions."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]


def lint(program: Path, *files: Path) -> str:
    # Its own checks of shell scripts and Python need programs that may be here or not.
    words: list[str | Path] = [program, "-no-color", "-oneline", "-shellcheck=", "-pyflakes=", *files]
    return subprocess.run(words, cwd=ROOT, capture_output=True, encoding="utf-8", check=False).stdout


def test_the_workflows_have_no_mistake(actionlint_program: Path) -> None:
    files = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

    assert files
    assert lint(actionlint_program, *files) == ""


def test_a_mistake_is_found(actionlint_program: Path, tmp_path: Path) -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    wrong = tmp_path / "release.yml"
    wrong.write_text(text.replace("needs: image", "needs: picture"), encoding="utf-8")

    assert "picture" in lint(actionlint_program, wrong)
