"""A headless Chromium, driven over the DevTools protocol; nothing but the browser itself is needed."""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import subprocess
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

PATIENCE_S = 120.0
HEIGHT, WIDTH = 800, 1280
NAMED = {"Enter": ("\r", 13), "Tab": ("", 9), "End": ("", 35), "ArrowUp": ("", 38)}
"""Of keys that are no letters: the text and the code."""

NAVIGATES = (
    "Inspected target navigated or closed",
    "Execution context was destroyed.",
    "Cannot find default execution context",
)
"""What the browser answers while it leaves a page for another."""


class Navigates(Exception):
    """The page that was asked is left for another."""


class Page:
    """A tab that shares nothing with others: opens addresses, runs scripts, presses keys.

    It remembers requests and complaints.
    """

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._numbers = itertools.count(1)
        self._session = ""
        self.requested: list[str] = []
        self.answered: list[tuple[int, str]] = []
        """Status and address of each answer."""
        self.complaints: list[str] = []
        context = self.ask("Target.createBrowserContext", disposeOnDetach=True)["browserContextId"]
        sizes = {"width": WIDTH, "height": HEIGHT}
        target = self.ask("Target.createTarget", url="about:blank", browserContextId=context, **sizes)
        attached = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "Performance"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer of the browser to a command."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._connection.send(json.dumps(message))
        while True:
            said = json.loads(self._connection.recv(timeout=PATIENCE_S))
            if said.get("id") == number:
                if said.get("error", {}).get("message") in NAVIGATES:
                    raise Navigates
                assert "error" not in said, said
                return said["result"]
            self._heard(said)

    def _heard(self, said: dict[str, Any]) -> None:
        at = said.get("params", {})
        match said.get("method"):
            case "Network.requestWillBeSent":
                self.requested.append(at["request"]["url"])
            case "Network.responseReceived":
                self.answered.append((at["response"]["status"], at["response"]["url"]))
            case "Page.javascriptDialogOpening":
                self.complaints.append(f"a dialog: {at['message']}")
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(at["exceptionDetails"]))
            case "Log.entryAdded":
                if at["entry"]["level"] == "error" and "favicon" not in at["entry"].get("url", ""):
                    self.complaints.append(f"{at['entry']['text']} {at['entry'].get('url', '')}")
            case _:
                pass

    def run(self, script: str) -> Any:
        """What an expression gives; a promise is waited for."""
        done = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def open(self, url: str, until: str = "main") -> None:
        """Open an address and wait until an element is there."""
        self.ask("Page.navigate", url=url)
        self.wait(f"document.querySelector({json.dumps(until)}) !== null")

    def wait(self, script: str) -> None:
        """Wait until an expression is true. `TimeoutError` with what the page says."""
        deadline = time.monotonic() + PATIENCE_S
        while not self._is_true(script):
            if time.monotonic() > deadline:
                said = self.run("document.body.innerText")[:500]
                raise TimeoutError(f"never: {script}; {said}; {self.complaints}")

    def _is_true(self, script: str) -> bool:
        """Whether an expression is true; if not, the next frame is there, or some time is over.

        A page may be loaded anew, and a browser on a busy machine may draw no frame for long.
        """
        try:
            if self.run(script):
                return True
            self.run(
                "new Promise(done => { requestAnimationFrame(() => done(0)); setTimeout(done, 200); })"
            )
        except Navigates:
            pass
        return False

    def press(self, key: str, *, control: bool = False) -> None:
        """Press a key and wait for the frame after it."""
        text, code = NAMED.get(key, (key if len(key) == 1 else "", 0))
        what: dict[str, Any] = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 2 * control}
        self.ask("Input.dispatchKeyEvent", type="keyDown", text=text, **what)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **what)

    @property
    def text(self) -> str:
        """What a person can read."""
        return self.run("document.body.innerText")

    def photograph(self, path: Path) -> None:
        """Keep a picture of the page, in the format of its suffix: png or webp."""
        path.parent.mkdir(parents=True, exist_ok=True)
        taken = self.ask("Page.captureScreenshot", format=path.suffix[1:])
        path.write_bytes(base64.b64decode(taken["data"]))


class Chromium:
    """A browser that runs, without a window."""

    def __init__(self, url: str) -> None:
        self._url = url

    @contextmanager
    def tab(self) -> Generator[Page]:
        """A new tab; it is gone afterwards, with all that it kept."""
        with connect(
            self._url, max_size=None, proxy=None, open_timeout=PATIENCE_S, ping_interval=None
        ) as connection:
            yield Page(connection)


@contextmanager
def chromium(folder: Path) -> Generator[Chromium]:
    """A browser with its profile in ``folder``."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    assert program, "there is no Chromium: apt-get install -y chromium"
    words = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
    words += [f"--user-data-dir={folder}", f"--window-size={WIDTH},{HEIGHT}", "about:blank"]
    process = subprocess.Popen([program, *words], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "DevTools listening on " in line:
                break
        else:
            raise AssertionError("Chromium did not start")
        threading.Thread(target=process.stderr.read, daemon=True).start()  # or its pipe would be full
        yield Chromium(line.split()[-1])
    finally:
        process.terminate()
        process.wait()
