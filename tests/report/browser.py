"""A headless Chromium, driven over its debugging pipe: no port, and no package beyond the standard library."""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe"),
)
SECONDS = 30


def executable() -> str | None:
    """A browser of the Chromium family on the PATH."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """One tab."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing
        self._buffer = b""
        self._ids = itertools.count(1)
        self._session: str | None = None
        self.events: list[Mapping[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send("Page.setLifecycleEventsEnabled", enabled=True)

    def send(self, method: str, **params: Any) -> Any:
        """Send a command of the DevTools protocol, and give its result."""
        number = next(self._ids)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, path: Path, *, width: int = 1440, height: int = 900, dark: bool = False, script: bool = True, anchor: str = "") -> float:
        """Open a file in a window of a size, and wait until it is loaded.

        Returns:
            Seconds until the page was loaded and had drawn.
        """
        self.resize(width, height)
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.send("Emulation.setScriptExecutionDisabled", value=not script)
        # From one part of a page to another there would be no loading to wait for.
        self._navigate("about:blank")
        self.events.clear()
        started = time.monotonic()
        self._navigate(path.resolve().as_uri() + anchor)
        if script:
            self.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        return time.monotonic() - started

    def resize(self, width: int, height: int = 900) -> None:
        """Give the window a size."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page; a promise is awaited."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, expression: str) -> Any:
        """Wait until an expression is true, and give its value."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            if value := self.evaluate(expression):
                return value
            time.sleep(0.02)
        raise TimeoutError(expression)

    def click(self, selector: str) -> None:
        """Click the middle of the first element that a selector finds, as a mouse would."""
        element = f"document.querySelector({json.dumps(selector)})"
        self.evaluate(f"{element}.scrollIntoView({{block: 'center'}})")
        box = self.evaluate(f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])({element}.getBoundingClientRect())")
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def press(self, key: str, code: int = 0, text: str = "") -> None:
        """Press a key."""
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, windowsVirtualKeyCode=code, text=text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=code)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.send("Input.insertText", text=text)

    def problems(self) -> list[str]:
        """What the page said that it should not have: errors, warnings, refused and failed requests, dialogs."""
        self.evaluate("0")
        found = []
        for event in self.events:
            params = event.get("params", {})
            match event.get("method"):
                case "Runtime.exceptionThrown":
                    found.append(str(params["exceptionDetails"]))
                case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                    found.append(str(params["args"]))
                case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                    found.append(str(params["entry"]))
                case "Page.javascriptDialogOpening":
                    found.append(f"dialog: {params['message']}")
        return found

    def requests(self) -> list[str]:
        """The addresses that pages asked for, pages opened from files aside."""
        asked = [event["params"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        urls = [(params["request"]["url"], params["type"] == "Document") for params in asked]
        return [url for url, document in urls if not url.startswith(("about:", "data:")) and not (document and url.startswith("file:"))]

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Write a picture of the window, or of the whole page."""
        more: dict[str, Any] = {}
        if whole:
            size = self.send("Page.getLayoutMetrics")["cssContentSize"]
            more = {"captureBeyondViewport": True, "clip": {**size, "scale": 1}}
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png", **more)["data"]))

    def close_browser(self) -> None:
        """Ask the browser to end, and its processes with it."""
        self._session = None
        self.send("Browser.close")

    def _navigate(self, url: str) -> None:
        loader = self.send("Page.navigate", url=url)["loaderId"]

        def loaded(event: Mapping[str, Any]) -> bool:
            params = event.get("params", {})
            return event.get("method") == "Page.lifecycleEvent" and params["loaderId"] == loader and params["name"] == "load"

        while not any(loaded(event) for event in self.events):
            self.events.append(self._receive())

    def _receive(self) -> Mapping[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._reading], [], [], SECONDS)
            if not ready:
                raise TimeoutError("the browser does not answer")
            received = os.read(self._reading, 1 << 20)
            if not received:
                raise RuntimeError("the browser has ended")
            self._buffer += received
        line, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(line)


@contextmanager
def browser(profile: Path) -> Iterator[Page]:
    """A browser with a fresh profile, ended with all its processes.

    Args:
        profile: an empty folder for the browser's own files.
    """
    command = executable()
    assert command is not None, "no browser of the Chromium family is on the PATH"
    to_browser, from_us = os.pipe()
    to_us, from_browser = os.pipe()
    # The browser reads descriptor 3 and writes descriptor 4. The shell puts them there, whatever their numbers are here.
    shell = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
    process = subprocess.Popen(
        ["/bin/bash", "-c", shell, "sh", command, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        pass_fds=(to_browser, from_browser),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "HOME": str(profile)},
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        page = Page(to_us, from_us)
        yield page
        page.close_browser()
        with suppress(subprocess.TimeoutExpired):
            process.wait(SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(from_us)
        os.close(to_us)
