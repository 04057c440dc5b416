"""Chromium without a window, driven over its DevTools protocol. It can reach loopback addresses only."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

from tests.support.tools.building import NoTool, install, may_install

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 60.0
"""Seconds in which the browser must answer."""

_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--metrics-recording-only",
    "--no-pings",
    "--force-color-profile=srgb",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-pipe",
    "about:blank",
)


def find_chromium() -> Path:
    """Return the browser of this machine, installed if that is wished; raises NoTool."""
    found = _on_path()
    if found is None and may_install():
        install("chromium")
        found = _on_path()
    if found is None:
        raise NoTool("no Chromium: the page is not opened; install it with: apt-get install chromium")
    return found


def _on_path() -> Path | None:
    return next((Path(found) for name in NAMES if (found := shutil.which(name))), None)


class Chromium:
    """Runs inside the context. It ends with its pipe, also if this process dies."""

    def __init__(self, program: Path) -> None:
        self._program = program
        self._answers: dict[int, SimpleQueue[dict[str, Any]]] = {}
        self._events: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._number = 0

    def __enter__(self) -> Chromium:
        self._folder = TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        to_read, self._to_it = os.pipe()
        self._from_it, to_write = os.pipe()
        # The browser reads its commands from file 3, and writes its answers to file 4.
        shell = f'exec "$0" "$@" 3<&{to_read} 4>&{to_write}'
        profile = f"--user-data-dir={self._folder.name}"
        self._process = subprocess.Popen(
            ["bash", "-c", shell, str(self._program), profile, *_FLAGS],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._reader = threading.Thread(target=self._read, name="chromium", daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._to_it)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        self._reader.join(10)
        os.close(self._from_it)
        self._folder.cleanup()

    def send(self, method: str, session: str = "", **parameters: object) -> Any:
        """Send a command, and return its result."""
        self._number += 1
        number = self._number
        self._answers[number] = SimpleQueue()
        command: dict[str, object] = {"id": number, "method": method, "params": parameters}
        if session:
            command["sessionId"] = session
        os.write(self._to_it, json.dumps(command).encode() + b"\0")
        answer = self._answers[number].get(timeout=PATIENCE)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the events that have come since the last call."""
        while True:
            try:
                yield self._events.get_nowait()
            except Empty:
                return

    def event(self, method: str) -> list[dict[str, Any]]:
        """Wait for an event of this name; return all events until then, and this one."""
        found = []
        while True:
            found.append(self._events.get(timeout=PATIENCE))
            if found[-1]["method"] == method:
                return found

    def _read(self) -> None:
        rest = b""
        while chunk := os.read(self._from_it, 1 << 16):
            *messages, rest = (rest + chunk).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self._answers[message["id"]].put(message)
                else:
                    self._events.put(message)

    @contextmanager
    def tab(self, width: int, *, dark: bool = False) -> Iterator[Tab]:
        """Open a tab of this width in CSS pixels, in the light or the dark mode."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session)
        for domain in ("Page", "Network", "Log", "Runtime", "DOM"):
            tab.send(f"{domain}.enable")
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        tab.send("Emulation.setDeviceMetricsOverride", **size)
        mode = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.send("Emulation.setEmulatedMedia", features=[mode])
        yield tab
        self.send("Target.closeTarget", targetId=target)


class Tab:
    """One tab of the browser."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser, self._session = browser, session
        self.said: list[dict[str, Any]] = []
        """What the page has logged, and what the browser has logged about it."""
        self.requested: list[str] = []
        """The addresses that were requested."""

    def send(self, method: str, **parameters: object) -> Any:
        """Send a command to the tab, and return its result."""
        return self._browser.send(method, self._session, **parameters)

    def open(self, url: str) -> None:
        """Load a page, and wait until it is there."""
        list(self._browser.events())
        self.send("Page.navigate", url=url)
        self._note(self._browser.event("Page.loadEventFired"))

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression, or of its promise."""
        found = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"]))
        self._note(self._browser.events())
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key that has no character, such as `Tab`."""
        for kind in ("rawKeyDown", "keyUp"):
            code = {"Tab": 9}[key]
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def pdf(self) -> bytes:
        """Return the page as it is printed."""
        return b64decode(self.send("Page.printToPDF", printBackground=True)["data"])

    def _note(self, events: Iterator[dict[str, Any]] | list[dict[str, Any]]) -> None:
        for one in events:
            if one.get("sessionId") != self._session:
                continue
            match one["method"]:
                case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded":
                    self.said.append(one["params"])
                case "Network.requestWillBeSent":
                    self.requested.append(one["params"]["request"]["url"])
