"""A server is reached by IPv6 whatever the loopback device of the Pod has."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

ASKS = """
import threading
from http.server import HTTPServer, SimpleHTTPRequestHandler
from socket import AF_INET6

from reconciler.http.bounded import BoundedClient, Bounds

class Server(HTTPServer):
    address_family = AF_INET6

with Server(("fd00::1", 0), SimpleHTTPRequestHandler) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(BoundedClient("test").send("GET", f"http://[fd00::1]:{server.server_port}/", Bounds()).status)
    server.shutdown()
"""


def test_a_server_is_reached_by_ipv6_also_without_a_loopback_address_of_it() -> None:
    if os.geteuid() or not all(map(shutil.which, ("unshare", "ip"))):
        pytest.skip("needs root, and the programs unshare and ip")
    network = "ip link set lo up; ip addr del ::1/128 dev lo; ip addr add fd00::1/128 dev lo nodad"
    command = ["unshare", "--net", "sh", "-ec", f'{network}; exec "$0" "$@"', sys.executable, "-c", ASKS]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "200\n"), done.stderr
