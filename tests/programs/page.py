#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: page.py DRIVER PAGE PID PICTURES

Looks at the page on port PAGE with the browser behind chromedriver on port DRIVER. PID is trainer 1,
which is stopped for a while; pictures are written to the folder PICTURES."""

import base64
import http.client
import json
import os
import pathlib
import re
import signal
import sys
import time

SECONDS_MAX = 120  # only bounds a failure
DRIVER, PAGE, PID = (int(argument) for argument in sys.argv[1:4])
PICTURES = pathlib.Path(sys.argv[4])


def check(holds, what):
    if not holds:
        print(f"FAILED: {what}", file=sys.stderr)
        sys.exit(1)


class Browser:
    """A session of WebDriver."""

    def __init__(self):
        self.path = ""
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options,
                  "goog:loggingPrefs": {"browser": "ALL"}}
        made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.path = "/session/" + made["sessionId"]

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", DRIVER, timeout=SECONDS_MAX)
        connection.request(method, self.path + path, json.dumps(body or {}) if method == "POST" else None,
                           {"Content-Type": "application/json"})
        value = json.loads(connection.getresponse().read())["value"]
        connection.close()
        check(not (isinstance(value, dict) and "error" in value), f"{path}: {value}")
        return value

    def run(self, script, *arguments):
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def devtools(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def text(self, selector):
        return self.run("return [...document.querySelectorAll(arguments[0])].map(e => e.innerText)", selector)

    def until(self, script, what):
        deadline = time.monotonic() + SECONDS_MAX
        while not self.run("return " + script):
            check(time.monotonic() < deadline, f"{what}: not within {SECONDS_MAX} s; the page: "
                  + self.run("return document.body.innerText")[:1500])
            time.sleep(0.2)

    def keys(self, *keys):
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "k", "actions": actions}]})

    def picture(self, name):
        taken = self.devtools("Page.captureScreenshot", captureBeyondViewport=True, clip={
            "x": 0, "y": 0, "scale": 1, "width": self.run("return innerWidth"),
            "height": self.run("return document.documentElement.scrollHeight")})
        (PICTURES / f"page-{name}.png").write_bytes(base64.b64decode(taken["data"]))

    def size(self, width, height, mobile):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height,
                      deviceScaleFactor=1, mobile=mobile)
        self.until(f"innerWidth === {width}", "the width")

    def colours(self, scheme):
        self.devtools("Emulation.setEmulatedMedia",
                      features=[{"name": "prefers-color-scheme", "value": scheme}])
        paper = self.run("return getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in re.findall(r"\d+", paper)[:3])


def served():
    connection = http.client.HTTPConnection("127.0.0.1", PAGE, timeout=SECONDS_MAX)
    connection.request("GET", "/api/v1/status")
    return json.loads(connection.getresponse().read())


def look_at_values(browser):
    browser.until("document.querySelectorAll('#split-chart path.compute').length > 0"
                  " && document.querySelectorAll('#tables tbody tr').length > 0"
                  " && document.querySelector('#more').innerText.includes(' ago')", "a whole page")
    check(browser.text("#state") == ["running"], f"state {browser.text('#state')}")
    check("2 of 2" in browser.text("#t-trainers")[0], browser.text("#t-trainers"))
    check(len(browser.text("#members tbody tr")) == 2, "two trainers")
    check(len(browser.text("#lanes tbody tr")) == 3, "three lanes")
    legend = " ".join(browser.text("#legend li"))
    check(all(part in legend for part in ("compute", "network", "waits for others", "apply")), legend)
    check("trainer 1 joined" in browser.text("#news")[0], browser.text("#news"))
    check(f"weft {served()['version']}" in browser.text("footer")[0], browser.text("footer"))
    before = served()["job"]["step"]
    drawn = int(browser.run("return document.body.dataset.drawn"))
    browser.until(f"Number(document.body.dataset.drawn) > {drawn + 1}", "another look")
    shown = int(browser.run("return document.querySelector('#t-step .value').firstChild.data"
                            r".replace(/\D/g, '')"))
    check(before <= shown <= served()["job"]["step"], f"step {shown}, from {before} on")
    widths = browser.run("return [...document.querySelectorAll('#members .bar:not(.lag)')].map("
                         "b => [...b.children].reduce((sum, part) => sum + part.offsetWidth, 0) / b.offsetWidth)")
    check(len(widths) == 2 and all(0.2 < width <= 1.02 for width in widths), f"bars {widths}")


def use_keyboard(browser):
    browser.keys("\ue004")  # tab
    check(browser.run("return document.activeElement.className") == "skip", "the first tab")
    browser.keys("\ue007")  # enter
    browser.until("location.hash === '#main'", "the link to the job")
    browser.keys("p")
    check(browser.run("return document.querySelector('#pause').ariaPressed") == "true", "key p")
    time.sleep(1.5)  # a look under way ends
    drawn = browser.run("return document.body.dataset.drawn")
    time.sleep(2.5)
    check(drawn == browser.run("return document.body.dataset.drawn"), "it holds still")
    browser.keys("p")
    browser.until(f"Number(document.body.dataset.drawn) > {drawn}", "it goes on")


def stop_one(browser):
    os.kill(PID, signal.SIGSTOP)
    try:
        browser.until("!document.querySelector('#banner').hidden", "a banner")
        browser.until("document.querySelector('#banner').innerText.includes('waits for trainer 1')",
                      "whom it waits for")
        browser.picture("waits")
    finally:
        os.kill(PID, signal.SIGCONT)
    browser.until("document.querySelector('#banner').hidden", "no banner")


def main():
    browser = Browser()
    browser.devtools("Page.enable")
    browser.size(1200, 900, False)
    browser.colours("light")
    browser.call("POST", "/url", {"url": f"http://127.0.0.1:{PAGE}/"})
    look_at_values(browser)
    light = browser.colours("light")
    time.sleep(5)
    browser.picture("light")
    dark = browser.colours("dark")
    browser.picture("dark")
    check(light > 600 and dark < 150, f"paper: light {light}, dark {dark} of 765")
    browser.colours("light")
    use_keyboard(browser)
    stop_one(browser)
    browser.size(390, 844, True)
    browser.until("document.documentElement.scrollWidth <= 390", "nothing is wider than a phone")
    browser.picture("phone")
    worst = [line for line in browser.call("POST", "/se/log", {"type": "browser"})
             if line["level"] == "SEVERE"]
    check(not worst, f"the browser complains: {worst}")
    browser.call("DELETE", "")


main()
