"""The settings of `serve`: which ones are in force while their file changes, breaks and disappears."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jobs.runtime.settings_source import SETTLE, Look, SettingsFile
from reconciler.model.content import short_hash
from reconciler.model.errors import SettingsError
from reconciler.settings.schema import Mode

BEGAN = datetime(2026, 11, 21, 22, 0, tzinfo=UTC)
GOOD = b"mode: Enforce\n"
BETTER = b"mode: Finish\n"


class Clock:
    """Both clocks of the process: seconds since the start."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return BEGAN + timedelta(seconds=self.seconds)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "maintenance.yaml"
    file.write_bytes(GOOD)
    return file


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(path: Path, clock: Clock) -> SettingsFile:
    return SettingsFile(path, clock.now, clock.monotonic)


def test_without_a_good_file_there_is_nothing_to_begin_with(tmp_path: Path, clock: Clock) -> None:
    with pytest.raises(SettingsError, match="can't be read"):
        SettingsFile(tmp_path / "none", clock.now)


def test_the_settings_in_force_have_the_hash_of_their_file_and_the_moment_of_loading(
    file: SettingsFile, path: Path, clock: Clock
) -> None:
    clock.seconds = 60
    path.write_bytes(BETTER)
    assert file.look() is Look.LOADED

    assert file.settings.mode is Mode.FINISH
    assert file.settings.version is not None
    assert file.settings.version.hash == short_hash(BETTER)
    assert file.settings.version.loaded == BEGAN + timedelta(seconds=60)
    assert file.mistake() == ""


@pytest.mark.parametrize(
    "content", [b"mode: Enforced\n", b"mode: \xff\xfe", b"mode: " + b"[" * 100_000, b"\x00", b"#" * 2_000_000]
)
def test_a_broken_file_is_rejected_once_and_said_until_it_is_repaired(
    file: SettingsFile, path: Path, clock: Clock, content: bytes
) -> None:
    clock.seconds = 60
    path.write_bytes(content)
    assert [file.look(), file.look()] == [Look.REJECTED, Look.SAME]

    assert file.settings.mode is Mode.ENFORCE
    assert file.mistake().startswith(
        f"settings rejected at 2026-11-21T22:01:00Z, those of hash {short_hash(GOOD)} still apply: {path}:"
    )
    version = file.settings.version
    path.write_bytes(GOOD)
    assert file.look() is Look.RESTORED
    assert (file.settings.version, file.mistake()) == (version, "")


@pytest.mark.parametrize("way", ["missing", "empty"])
def test_a_file_that_is_missing_or_empty_for_a_moment_changes_nothing(
    file: SettingsFile, path: Path, clock: Clock, way: str
) -> None:
    for _ in range(3):
        if way == "missing":
            path.unlink()
        else:
            path.write_bytes(b"")
        assert file.look() is Look.SAME
        assert file.again() == SETTLE
        clock.seconds += SETTLE - 0.1
        assert file.look() is Look.SAME
        assert file.mistake() == ""
        path.write_bytes(GOOD)
        assert file.look() is Look.SAME
        assert file.again() is None


def test_a_file_that_stays_away_is_rejected(file: SettingsFile, path: Path, clock: Clock) -> None:
    path.unlink()
    file.look()
    clock.seconds += SETTLE
    assert file.look() is Look.REJECTED
    assert "can't be read: No such file or directory" in file.mistake()
    assert file.again() is None
    assert file.settings.mode is Mode.ENFORCE


def test_a_file_that_stays_empty_means_the_defaults(file: SettingsFile, path: Path, clock: Clock) -> None:
    path.write_bytes(b"")
    file.look()
    clock.seconds += SETTLE
    assert file.look() is Look.LOADED
    assert file.settings.mode is Mode.OBSERVE


def test_a_config_map_that_is_swapped_is_loaded_without_a_gap(tmp_path: Path, clock: Clock) -> None:
    def publish(number: int, content: bytes) -> None:
        """As the kubelet does: a new folder, and the link `..data` is renamed over the old one."""
        folder = tmp_path / f"..{number}"
        folder.mkdir()
        (folder / "maintenance.yaml").write_bytes(content)
        (tmp_path / "..fresh").symlink_to(folder.name)
        os.replace(tmp_path / "..fresh", tmp_path / "..data")

    publish(1, GOOD)
    (tmp_path / "maintenance.yaml").symlink_to("..data/maintenance.yaml")
    file = SettingsFile(tmp_path / "maintenance.yaml", clock.now, clock.monotonic)

    publish(2, GOOD)
    assert file.look() is Look.SAME
    publish(3, BETTER)
    assert file.look() is Look.LOADED
    assert file.settings.mode is Mode.FINISH
