"""Stand-ins: what takes the place of each word of a document that may identify somebody.

A word stays if it is public: a word of this program, of Kubernetes or of Azure's announcements, a date, or a
short number. Every other word is replaced, in keys too, so no list of what is secret can be incomplete.
The same word has the same stand-in in the whole document. A stand-in is a number by the order of the words,
and nothing is computed from the word, so nobody can try out names.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from reconciler.model import limits

IDS, ADDRESSES, REGIONS, NAMES = "ids", "addresses", "regions", "names"
"""The kinds of words that are replaced, by their form. Who makes the document knows more of them."""

# Punctuation stays where it is. An address of IPv6 and a MAC address have it inside.
_PARTS = re.compile(
    r"(?P<address>(?<![\w:])(?:(?:[0-9A-Fa-f]{0,4}:){2,7}(?<=::)[0-9A-Fa-f:]{0,32}|"
    r"(?:[0-9A-Fa-f]{1,4}:){2,6}:[0-9A-Fa-f:]{0,32}|(?:[0-9A-Fa-f]{1,4}:){5,7}[0-9A-Fa-f]{1,4})(?![\w:]))"
    r"|(?P<word>[^\s\"'(){}\[\],;:=<>|/\\!&?#$*`^~]+)"
)
_DAY = r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}"
_PUBLIC = re.compile(
    r"[-+]?[0-9]{1,6}(?:\.[0-9]{1,3})?"  # a number
    r"|(?:[0-9]{1,6}(?:ms|[KMGT]i|[smhdkMGT%]))+"  # a duration, a quantity
    r"|[0-9]{1,2}(?:am|pm)|[0-9]{1,2}-[0-9]{1,2}"  # a time of day, a range of cron
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2})?"  # the date of RFC 3339, and its seconds with the zone
    r"|[0-9]{2}(?:\.[0-9]{1,9})?(?:Z|[+-][0-9]{2})?"
    r"|v?[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}"  # a version
    rf"|{_DAY}-{_DAY}",
    re.ASCII | re.IGNORECASE,
)
_GUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_INSTANCE = re.compile(r"i-[0-9a-f]{1,17}", re.IGNORECASE | re.ASCII)
_DIGITS = re.compile(r"[-+]?[0-9.]{7,}", re.ASCII)
_IPV4 = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}", re.ASCII)
# The VM of a scale set has the name of the set and a number.
_OF_SET = re.compile(r"(.+)(_[0-9]{1,6})", re.ASCII)
# A hook is an annotation with the name of its step.
_OF_STEP = re.compile(r"((?:pre-drain|post-drain|pre-uncordon)\.)(.+)")
# The zone of an instance of EC2 begins with the region, which its answers name.
_REGION = r"([a-z]{2,8}(?:-[a-z]{1,12}){1,3}?-[0-9]{1,2})"
_EC2 = re.compile(rf"aws:///{_REGION}[a-z0-9-]*/i-", re.IGNORECASE | re.ASCII)
_OF_REGION = re.compile(rf"{_REGION}((?![0-9]).+)", re.IGNORECASE | re.ASCII)

_LARGEST = 10**8
"""A number of a document that is larger keeps its first digit only. A year has fewer seconds."""

_DECIMALS = 3


class Hidden(Struct, frozen=True):
    """A word that was replaced, of which kind it is, and its stand-in."""

    kind: str
    word: str
    stand_in: str


class StandIns:
    """The stand-ins of all words of one document."""

    def __init__(self, document: Any, public: Iterable[str], kinds: Mapping[str, str]) -> None:
        """Number the words of the document that are not among the public ones, without regard to case.

        `kinds` are those of words whose form does not say it, such as `nodes` for the names of nodes.
        """
        self._kinds = {word.casefold(): kind for word, kind in kinds.items()}
        self._public = frozenset(word.casefold() for word in public)
        self._found: dict[str, set[str]] = {}
        self._regions = {found.casefold() for text in _texts(document) for found in _EC2.findall(text)}
        self._numbers: dict[str, str] = {}
        # A document has most of its words many times.
        self._kept: dict[str, str] = {}
        # The first walk only collects.
        self._walked(document, self._collected)
        self._kept = {}
        counts: Counter[str] = Counter()
        for word in sorted(self._found):
            kind = self._kind(word)
            counts[kind] += 1
            self._numbers[word] = _stand_in(kind, counts[kind], word)
        self.counts: Mapping[str, int] = dict(sorted(counts.items()))

    def of(self, document: Any) -> Any:
        """Return the document with the stand-ins, of which it is, or a part of it."""
        return self._walked(document, self._replaced)

    @property
    def hidden(self) -> tuple[Hidden, ...]:
        """Every word that was replaced, in the order of the stand-ins."""
        return tuple(
            Hidden(self._kind(word), spelt, self._replaced(spelt))
            for word, spellings in sorted(self._found.items())
            for spelt in sorted(spellings)
        )

    def _walked(self, value: Any, each: Callable[[str], str]) -> Any:
        if isinstance(value, str):
            return self._text(value, each)
        if isinstance(value, dict):
            return {self._text(key, each): self._walked(item, each) for key, item in value.items()}
        if isinstance(value, list):
            return [self._walked(item, each) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) > _LARGEST:
            if isinstance(value, float):
                return float(f"{value:.0e}")
            digits = str(abs(value))
            size = int(f"{digits[0]}{'0' * (len(digits) - 1)}")
            return size if value > 0 else -size
        return round(value, _DECIMALS) if isinstance(value, float) else value

    def _text(self, text: str, each: Callable[[str], str]) -> str:
        if text.casefold() in self._public:
            return text
        if text[:1] in ("{", "["):
            # An annotation. An escape inside of it would be no word.
            try:
                walked = self._walked(limits.loads(text, limits.LEDGER), each)
                return json.dumps(walked, separators=(",", ":"), ensure_ascii=False)
            except (ValueError, RecursionError):
                pass
        return _PARTS.sub(lambda part: self._kept.get(part[0]) or self._part(part, each), text)

    def _part(self, part: re.Match[str], each: Callable[[str], str]) -> str:
        self._kept[part[0]] = made = self._made(part, each)
        return made

    def _made(self, part: re.Match[str], each: Callable[[str], str]) -> str:
        if part["address"] is not None:
            return each(part["address"])
        # A point ends a sentence.
        word = part["word"].strip(".")
        before, _, after = part["word"].partition(word) if word else (part["word"], "", "")
        return f"{before}{self._word(word, each)}{after}"

    def _word(self, word: str, each: Callable[[str], str]) -> str:
        if not word or word.casefold() in self._public or _PUBLIC.fullmatch(word):
            return word
        if len(word) > limits.NAME:
            # It is no name, so it has no parts.
            return each(word)
        if (step := _OF_STEP.fullmatch(word)) is not None:
            return f"{step[1]}{self._word(step[2], each)}"
        if (vm := _OF_SET.fullmatch(word)) is not None:
            return f"{self._word(vm[1], each)}{vm[2]}"
        if (zone := _OF_REGION.fullmatch(word)) is not None and zone[1].casefold() in self._regions:
            return f"{each(zone[1])}{zone[2] if len(zone[2]) == 1 else f'-{each(zone[2])}'}"
        return each(word)

    def _collected(self, word: str) -> str:
        self._found.setdefault(word.casefold(), set()).add(word)
        return word

    def _replaced(self, word: str) -> str:
        key = word.casefold()
        stand_in = self._numbers[key]
        others = sorted(self._found[key] - {key})
        if word not in others:
            return stand_in
        # Spellings that differ in their case alone go on doing so: the letters of the bits of this number are
        # in upper case.
        number = others.index(word) + 1
        letters = [place for place, letter in enumerate(stand_in) if letter.isalpha()]
        upper = {place for bit, place in enumerate(letters) if number >> bit & 1}
        return "".join(letter.upper() if place in upper else letter for place, letter in enumerate(stand_in))

    def _kind(self, word: str) -> str:
        if word in self._regions:
            return REGIONS
        if _GUID.fullmatch(word) or _INSTANCE.fullmatch(word):
            return IDS
        if _IPV4.fullmatch(word) or ":" in word or "@" in word:
            return ADDRESSES
        if _DIGITS.fullmatch(word):
            return IDS
        return self._kinds.get(word, ADDRESSES if "." in word else NAMES)


def _stand_in(kind: str, number: int, word: str) -> str:
    if _GUID.fullmatch(word):
        return f"aaaaaaaa-0000-4000-8000-{number:012d}"
    if _INSTANCE.fullmatch(word):
        return f"i-{number:08x}"
    if kind == REGIONS:
        return f"zz-region-{number}"
    return f"host-s{number:03d}.invalid" if kind == ADDRESSES else f"{kind.removesuffix('s')}-s{number:03d}"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
