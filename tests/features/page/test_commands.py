"""`reconciler page`: what it says where it can't show the page."""

from __future__ import annotations

import pytest

from jobs.cli import main


def test_without_kubectl_it_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")

    assert main(["page", "--no-browser"]) == 2
    assert "there is no kubectl on the PATH" in capsys.readouterr().err
