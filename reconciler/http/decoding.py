"""JSON to typed values, for clients that several threads use.

msgspec 0.22 collects the fields of a type when it decodes the type first. If two threads do that at the same
time, the process ends with a segmentation fault. So each decoder is made once, by one thread at a time.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, TypeVar

import msgspec

_Kind = TypeVar("_Kind")

_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
_making = Lock()


def decode_json(kind: type[_Kind], body: bytes | msgspec.Raw) -> _Kind:
    """Decode JSON into a type.

    Raises msgspec.DecodeError if it is not JSON or has another shape, UnicodeDecodeError if a text is not
    UTF-8, RecursionError if it is nested too deep.
    """
    decoder = _decoders.get(kind)
    if decoder is None:
        with _making:
            decoder = _decoders.setdefault(kind, msgspec.json.Decoder(kind))
    decoded: _Kind = decoder.decode(body)
    return decoded
