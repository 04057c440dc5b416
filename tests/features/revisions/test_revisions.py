"""The revisions of the settings as values: what is kept, what goes first, and what broken ones do."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import zlib

import pytest

from reconciler.features.revisions.revisions import LARGEST, MOST, Kept, Revision, from_text, to_text
from reconciler.model import limits
from tests.support.builders import NOW


def kept(*texts: bytes, keep: int = 20) -> Kept:
    found = Kept()
    for text in texts:
        found = found.with_text(text, NOW, "kubectl-edit", 3, keep)
    return found


def test_each_text_is_a_revision_as_it_was_written() -> None:
    read = from_text(to_text(kept(b"mode: Enforce\n", b"esx: {password: ${PASSWORD}}\r\n")))

    assert [(each.number, each.content()) for each in read.revisions] == [
        (1, b"mode: Enforce\n"),
        (2, b"esx: {password: ${PASSWORD}}\r\n"),
    ]
    assert (read.revisions[0].at, read.revisions[0].by, read.revisions[0].managed) == (NOW, "kubectl-edit", 3)
    assert read.revisions[0].hash == hashlib.sha256(b"mode: Enforce\n").hexdigest()[:12]


def test_the_same_text_again_is_no_new_revision_but_an_earlier_one_is() -> None:
    once = kept(b"a: 1", b"a: 2")

    assert once.with_text(b"a: 2", NOW, "helm", 5, 20) == once
    assert [each.content() for each in once.with_text(b"a: 1", NOW, "", 0, 20).revisions] == [
        b"a: 1",
        b"a: 2",
        b"a: 1",
    ]


def test_the_oldest_go_first_and_the_numbers_go_on() -> None:
    found = kept(*(b"a: %d" % number for number in range(5)), keep=3)

    assert [each.number for each in found.revisions] == [3, 4, 5]
    assert found.left_out == 0


def noise(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


def test_all_together_have_a_limit_and_those_that_do_not_fit_are_counted() -> None:
    found = kept(*(noise(seed, LARGEST // 4) for seed in range(4)))

    assert len(to_text(found).encode()) <= LARGEST
    assert [each.number for each in found.revisions] == [3, 4]
    assert found.left_out == 2


def test_a_text_that_is_too_large_alone_is_known_without_its_content() -> None:
    found = kept(b"a: 1", noise(1, LARGEST))

    assert len(to_text(found).encode()) <= LARGEST
    with pytest.raises(ValueError, match="too large to keep"):
        found.revisions[-1].content()


def packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content)).decode()


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("!", "can't be read"),
        ("é", "ASCII"),
        (base64.b64encode(b"no zlib").decode(), "can't be read"),
        (packed(b"mode: Observe\n"), "the hash differs"),
        (packed(b"\0" * (limits.LARGEST_SETTINGS * 4)), "the hash differs"),
    ],
)
def test_a_text_that_somebody_has_changed_is_refused(text: str, because: str) -> None:
    broken = Revision(1, NOW, hashlib.sha256(b"mode: Enforce\n").hexdigest(), packed=text)

    with pytest.raises(ValueError, match=because):
        broken.content()


def revision(**others: object) -> str:
    """The text of one revision in which others have written something."""
    at, sha256 = "2026-11-21T12:00:00Z", hashlib.sha256(b"").hexdigest()
    return json.dumps({"version": 1, "revisions": [{"number": 1, "at": at, "sha256": sha256, **others}]})


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("{", "line 1 column 2"),
        ("[]", "it has version None"),
        ('{"version": 2}', "it has version 2"),
        ('{"version": 1, "revisions": [{}]}', "number"),
        ("{" * 2_000_000, "longer than"),
        ("[" * 500_000, "nested too deep"),
        (revision(number=-1), "number"),
        (revision(number=limits.COUNT + 1), "number"),
        (revision(sha256="\x1b[31m"), "revision 1 has no hash"),
        (revision(at="2026-11-21T12:00:00"), "without a time zone"),
        (revision(at="0001-01-01T00:00:00+14:00"), "too far away"),
        (json.dumps({"version": 1, "revisions": [{}] * (MOST + 1)}), "101 items"),
    ],
)
def test_what_is_no_document_of_ours_is_refused(text: str, because: str) -> None:
    with pytest.raises(ValueError, match=because):
        from_text(text)


@pytest.mark.parametrize(
    "text", [revision(number=limits.COUNT), json.dumps({**json.loads(revision()), "leftOut": limits.COUNT})]
)
def test_after_numbers_that_nobody_has_reached_the_next_revision_can_be_read(text: str) -> None:
    again = from_text(to_text(from_text(text).with_text(b"mode: Enforce\n", NOW, "", 1, 20)))

    assert again.newest is not None
    assert again.newest.content() == b"mode: Enforce\n"


def test_without_a_text_there_are_no_revisions() -> None:
    assert from_text("") == Kept()
