"""A headless Chromium for tests, led through the DevTools protocol: open a page, set it up, run a script, look.

    with Browser() as browser:
        tab = browser.open(path)
        tab.show(width=390, dark=True)
        assert tab.evaluate("document.title") == ...
        assert tab.messages == []

`why_not()` says why there is none, for a test that must be skipped.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
START_SECONDS, CALL_SECONDS = 60, 30


def executable() -> str | None:
    """Where a browser is: what TOKDFA_CHROMIUM names, or the first on the path."""
    return os.environ.get("TOKDFA_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def why_not() -> str:
    """Why no browser can be led here; empty if one can."""
    try:
        import websocket  # noqa: F401
    except ImportError:
        return "the package websocket-client, which leads a browser, is not installed"
    return "" if executable() else f"there is no browser: none of {', '.join(NAMES)} is on the path"


class Browser:
    """A browser process with a profile of its own; both end with the `with` block."""

    def __enter__(self) -> Browser:
        import websocket

        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        found = executable()
        assert found is not None, why_not()
        flags = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
        where = f"--user-data-dir={self._profile.name}"
        command = [found, *flags, "--hide-scrollbars", "--remote-debugging-port=0", where, "about:blank"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        address = f"ws://127.0.0.1:{self._port_and_path()}"
        self._socket = websocket.create_connection(address, timeout=CALL_SECONDS, suppress_origin=True)
        self._numbers = itertools.count(1)
        self.events: list[dict[str, Any]] = []
        return self

    def __exit__(self, *_: object) -> None:
        self.call("Browser.close")
        self._socket.close()
        self._process.wait(timeout=CALL_SECONDS)
        self._profile.cleanup()

    def _port_and_path(self) -> str:
        """Where the browser listens: it writes that into its profile once it does."""
        file = Path(self._profile.name) / "DevToolsActivePort"
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self._process.poll() is None:
            lines = file.read_text().split() if file.exists() else []
            if len(lines) == 2:
                return "".join(lines)
            time.sleep(0.05)
        self._process.kill()
        raise AssertionError(f"{self._process.args} did not start within {START_SECONDS} s")

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol and its result; events that come before it are kept in `events`."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        self._socket.send(json.dumps(message | ({"sessionId": session} if session else {})))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])
            self.events.append(answer)

    def open(self, path: Path) -> Tab:
        """A tab that shows a file."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.call(f"{domain}.enable")
        tab.call("Page.navigate", url=path.resolve().as_uri())
        tab.evaluate("new Promise((done) => document.readyState === 'complete' ? done() : (onload = done))")
        return tab


class Tab:
    """One page in the browser."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page, awaited if it is a promise."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def show(self, width: int, height: int = 900, dark: bool = False) -> None:
        """Bring it to the front, and set the window's size in CSS pixels and which colours the reader prefers."""
        self.call("Page.bringToFront")  # a page in the background is neither laid out nor drawn anew
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def click(self, selector: str) -> None:
        """A click of the mouse on the middle of the first element that a CSS selector finds, scrolled into view."""
        where = (
            f"(() => {{ const one = document.querySelector({json.dumps(selector)}); "
            "one.scrollIntoView({block: 'center', behavior: 'instant'}); const box = one.getBoundingClientRect(); "
            "return [box.left + box.width / 2, box.top + box.height / 2]; })()"
        )
        x, y = self.evaluate(where)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    @property
    def messages(self) -> list[str]:
        """What the page has written to the console, its errors, and all it has asked the network for but itself."""
        self.evaluate("0")  # what has happened before is known then
        found = []
        for event in self._browser.events:
            if event.get("sessionId") != self._session:
                continue
            details = event["params"]
            if event["method"] in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
                found.append(json.dumps(details))
            elif event["method"] == "Network.requestWillBeSent" and details.get("type") != "Document":
                found.append(f"asked for {details['request']['url']}")
        return found

    def picture(self, whole: bool = True) -> bytes:
        """A PNG of the page, or of the window."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"])
