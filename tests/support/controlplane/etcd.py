"""The keys of an etcd on loopback, over its JSON gateway: enough to see them all and to delete some."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

import urllib3

REGISTRY = "/registry/"
# A transaction of so many keys stays below etcd's limit of 1.5 MiB a request.
MOST_AT_ONCE = 5_000


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

    def delete(self, keys: Collection[str]) -> None:
        """Delete these keys, all in one transaction where there are not thousands of them."""
        left = iter(keys)
        while part := list(islice(left, MOST_AT_ONCE)):
            operations = [{"request_delete_range": {"key": _encoded(key)}} for key in part]
            self._ask("txn", {"success": operations})

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
    yield from {key.removeprefix(REGISTRY).split("/", 1)[0] for key in keys}
