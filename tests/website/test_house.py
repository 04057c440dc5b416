"""The picture of the program: current, and with what each room is for."""

from __future__ import annotations

from website.house import ROOT, floors, picture

FLOORS = floors()
ROOMS = [room for rooms in FLOORS for room in rooms]


def test_each_room_says_what_it_is_for() -> None:
    assert [room.name for room in ROOMS if not room.purpose] == []


def test_rooms_of_plugins_name_them() -> None:
    assert {room.name for room in ROOMS if room.plugins} == {"features", "sources"}


def test_the_picture_is_current() -> None:
    written = (ROOT / "docs" / "images" / "house.svg").read_text(encoding="utf-8")

    assert written == picture(FLOORS), "run nox -s docs"
