"""Screenshots of a report's pages, for the documentation and to look at:

    screenshots.py REPORT.html FOLDER [--width 1400] [--height 900] [--dark] [--whole] [FRAGMENT...]

Each fragment ("#/overview") becomes FOLDER/NAME.png; without any, all main pages do."""

import argparse
import base64
import pathlib
import re
import time

from browser import start_browser

PAGES = ["#/overview", "#/kernels", "#/thermal", "#/failures", "#/comparison"]


def take(browser, page, fragment, arguments):
    size = {"width": arguments.width, "deviceScaleFactor": 1, "mobile": arguments.width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {**size, "height": arguments.height})
    browser.get("about:blank")
    browser.get(page.resolve().as_uri() + fragment)
    if arguments.whole:
        height = min(12_000, browser.execute_script("return document.documentElement.scrollHeight"))
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {**size, "height": height})
    else:
        height = arguments.height
    # Charts are drawn when they come near the screen and again when its size has changed.
    time.sleep(1)
    screenshot = browser.execute_cdp_cmd("Page.captureScreenshot", {
        "clip": {"x": 0, "y": 0, "width": arguments.width, "height": height, "scale": 1}})
    name = re.sub(r"\W+", "_", fragment).strip("_") or "report"
    (arguments.folder / f"{name}.png").write_bytes(base64.b64decode(screenshot["data"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("fragments", nargs="*")
    parser.add_argument("--width", type=int, default=1400)
    parser.add_argument("--height", type=int, default=900)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--whole", action="store_true", help="all of the page, not only the first screen")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    browser = start_browser()
    try:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": "dark" if arguments.dark else "light"}]})
        for fragment in arguments.fragments or PAGES:
            take(browser, arguments.report, fragment, arguments)
    finally:
        browser.quit()


if __name__ == "__main__":
    main()
