"""Debian's chromium without a screen, spoken to by the WebDriver protocol (https://www.w3.org/TR/webdriver2)."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # how the protocol names a reference to an element


class WebDriverError(Exception):
    pass


class Browser:
    """A browser of its own: without a network, without what others have left in a profile."""

    def __init__(self, width=1400, height=1000, dark=False):
        self.profile = tempfile.mkdtemp(prefix="ft-browser-")
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                       env={**os.environ, "HOME": self.profile})
        self.session = None
        try:
            self.address = f"http://127.0.0.1:{self._port()}"
            self._begin(width, height, dark)
        except BaseException:
            self.close()
            raise

    def _port(self):
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                return int(line.rstrip(".\n").split()[-1])
        raise WebDriverError("chromedriver has not started")

    def _begin(self, width, height, dark):
        arguments = ["--headless=new", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage",
                     "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={self.profile}/profile", f"--window-size={width},{height}",
                     "--hide-scrollbars", "--force-color-profile=srgb"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")  # which chromium wants of root
        if dark:
            arguments.append("--blink-settings=preferredColorScheme=0")
        options = {"args": arguments}
        if chromium := shutil.which("chromium"):
            options["binary"] = chromium
        answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.session = f"/session/{answer['sessionId']}"
        self._call("POST", f"{self.session}/timeouts", {"script": 60000})

    def _call(self, method, path, body=None):
        request = urllib.request.Request(self.address + path, method=method, data=None if body is None else json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise WebDriverError(json.load(error)["value"]["message"]) from error

    def close(self):
        try:
            if self.session:
                self._call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.driver.stdout.close()
            shutil.rmtree(self.profile, ignore_errors=True)

    def open(self, path):
        self._call("POST", f"{self.session}/url", {"url": f"file://{path}"})

    def run(self, script, *arguments):
        """The value that a function body returns, in the page."""
        return self._call("POST", f"{self.session}/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script, *arguments, seconds=20):
        """The first value of the script's function `ask` that is true, asked for each picture; None when there is none in time."""
        return self._call("POST", f"{self.session}/execute/async", {"args": [*arguments], "script": f"""
            const done = arguments[arguments.length - 1], given = [...arguments].slice(0, -1), end = performance.now() + {seconds * 1000};
            (function () {{
              {script}
              const again = () => {{
                const value = ask.apply(null, given);
                if (value || performance.now() > end) done(value || null);
                else requestAnimationFrame(again);
              }};
              again();
            }}).apply(null, given);"""})

    def find(self, selector):
        return self._call("POST", f"{self.session}/element", {"using": "css selector", "value": selector})

    def text(self, selector):
        return self._call("GET", f"{self.session}/element/{self.find(selector)[ELEMENT]}/text")

    def click(self, selector):
        self._call("POST", f"{self.session}/element/{self.find(selector)[ELEMENT]}/click", {})

    def actions(self, *sources):
        self._call("POST", f"{self.session}/actions", {"actions": list(sources)})

    def point(self, x, y, click=False):
        """The pointer, in pixels of what is seen."""
        steps = [{"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y), "origin": "viewport"}]
        if click:
            steps += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.actions({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": steps})

    def press(self, *keys):
        steps = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.actions({"type": "key", "id": "keyboard", "actions": steps})

    def console(self):
        """What the console has said since the last call."""
        return self._call("POST", f"{self.session}/se/log", {"type": "browser"})

    def picture(self):
        """PNG of what is seen."""
        return base64.b64decode(self._call("GET", f"{self.session}/screenshot"))
