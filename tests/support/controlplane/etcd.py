"""The keys of an etcd on loopback, over its JSON gateway: enough to see them all and to delete some."""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from collections.abc import Collection, Iterator
from itertools import islice, zip_longest
from typing import Any

import urllib3

REGISTRY = "/registry/"
# A transaction of so many keys stays below etcd's limit of 1.5 MiB a request.
MOST_AT_ONCE = 5_000
# The API server keeps no cache of them, and nothing watches them.
_UNWATCHED = "events"


class Etcd:
    """One etcd, without its watches and leases."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool = urllib3.PoolManager(retries=False, timeout=30)

    def close(self) -> None:
        """Close all connections."""
        self._pool.clear()

    def all_keys(self) -> frozenset[str]:
        """All keys of the API server, such as `/registry/pods/default/web`."""
        # The end of a prefix is the prefix with its last character one higher: `0` comes after `/`.
        end = REGISTRY[:-1] + chr(ord(REGISTRY[-1]) + 1)
        body = {"key": _encoded(REGISTRY), "range_end": _encoded(end), "keys_only": True}
        found = self._ask("range", body).get("kvs", [])
        return frozenset(base64.b64decode(one["key"]).decode() for one in found)

    def delete(self, keys: Collection[str]) -> dict[str, int]:
        """Delete these keys in few transactions, of which each has one key of a kind.

        Return for each kind the revision of its last deletion.

        A transaction is one revision. A watch that ends between two events of a revision goes on after it, so
        whoever watches would never see the second: the scheduler would bind pods to a node that is gone.
        """
        kinds: dict[str, list[str]] = defaultdict(list)
        for key in sorted(keys):
            kinds[_kind(key)].append(key)
        unwatched = iter(kinds.pop(_UNWATCHED, ()))
        while part := list(islice(unwatched, MOST_AT_ONCE)):
            self._delete_at_once(part)
        revisions: dict[str, int] = {}
        for row in zip_longest(*kinds.values()):
            part = [key for key in row if key is not None]
            revisions |= dict.fromkeys(folders(part), self._delete_at_once(part))
        return revisions

    def _delete_at_once(self, keys: Collection[str]) -> int:
        operations = [{"request_delete_range": {"key": _encoded(key)}} for key in keys]
        return int(self._ask("txn", {"success": operations})["header"]["revision"])

    def _ask(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self._pool.request("POST", f"{self._url}/v3/kv/{method}", body=json.dumps(body).encode())
        if answer.status != 200:
            msg = f"etcd answers {answer.status}: {answer.data.decode(errors='replace')[:200]}"
            raise RuntimeError(msg)
        document: dict[str, Any] = json.loads(answer.data)
        return document


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def folders(keys: Collection[str]) -> Iterator[str]:
    """The kinds that keys are of, as etcd names them: `pods`, `services`, `nodes`."""
    yield from {_kind(key) for key in keys}


def _kind(key: str) -> str:
    return key.removeprefix(REGISTRY).split("/", 1)[0]
