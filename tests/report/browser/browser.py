"""A headless Chromium with the report in it. Run as a program each test file skips, saying so, where there is none."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
try:
    from selenium import webdriver
    from selenium.common.exceptions import StaleElementReferenceException
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    webdriver = By = None

WIDE = (1400, 1000)


def render(document):
    """The page of a document (or of text in its place), as html_report makes it."""
    text = document if isinstance(document, str) else json.dumps(document)
    done = subprocess.run([os.environ["PASCALINE_RENDER_REPORT"]], input=text.encode(), capture_output=True, timeout=600,
                          check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode())
    return done.stdout.decode()


def start_browser():
    options = Options()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--disable-dev-shm-usage", "--disable-gpu", "--disable-extensions", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update", "--force-color-profile=srgb"):
        options.add_argument(argument)
    if os.geteuid() == 0:  # Chromium's sandbox refuses root
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(service=Service(DRIVER), options=options)
    browser.set_page_load_timeout(300)
    browser.set_script_timeout(300)
    return browser


class BrowserTest(unittest.TestCase):
    """One browser a class; `page` is the path of the page that `open` loads."""

    document = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.browser = start_browser()
        if cls.document is not None:
            cls.page = cls.write(cls.document)

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.folder.cleanup()

    @classmethod
    def write(cls, document, name="report.html"):
        path = pathlib.Path(cls.folder.name) / name
        path.write_text(render(document), encoding="utf-8")
        return path

    def setUp(self):
        self.resize(*WIDE)
        self.media()
        self.logs()

    def tearDown(self):
        self.assertEqual(self.complaints(), [], "the console has errors or warnings")

    def resize(self, width, height):
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                     {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})

    def media(self, scheme="light", kind=""):
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "media": kind, "features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def logs(self):
        """What was logged of network and page since the last call."""
        return [json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")]

    def complaints(self):
        return [entry for entry in self.browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def open(self, fragment="", page=None):
        """Loads the page again, without anything kept of an earlier one."""
        self.browser.get("about:blank")
        self.browser.get((page or self.page).as_uri() + fragment)
        self.wait(lambda: self.browser.find_elements(By.CSS_SELECTOR, "main h1"))

    def go(self, fragment):
        """Follows a link inside the page."""
        self.script("window.arrived = new Promise((done) => addEventListener('hashchange', () => done(), {once: true}));"
                 "location.hash = arguments[0]", fragment)
        self.browser.execute_async_script("const done = arguments[0]; arrived.then(() => requestAnimationFrame(() => done()))")

    def processor_s(self):
        """Seconds of a processor that the browser used so far, whatever else the machine does."""
        parents, used = {}, {}
        for file in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):  # of a process that is gone
                fields = file.read_text().rpartition(")")[2].split()
                process = int(file.parent.name)
                parents[process] = int(fields[1])
                used[process] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        own = {self.browser.service.process.pid}
        while more := {process for process, parent in parents.items() if parent in own} - own:
            own |= more
        return sum(used.get(process, 0) for process in own)

    def processor_s_of(self, act):
        """Seconds of a processor that the browser uses while `act` runs."""
        before_s = self.processor_s()
        act()
        return self.processor_s() - before_s

    def script(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def wait(self, condition, seconds=300):
        """Until the condition holds; an element that is replaced while it is looked at is looked for again."""
        return WebDriverWait(self.browser, seconds, poll_frequency=0.05,
                             ignored_exceptions=[StaleElementReferenceException]).until(lambda _: condition())

    def draw_all(self):
        """Has every chart of the page drawn: they are when they come near the screen, so the screen is made to hold it."""
        width = self.script("return innerWidth")
        self.resize(width, min(20_000, self.script("return document.documentElement.scrollHeight")))
        self.wait(lambda: not self.script("return document.querySelectorAll('main canvas:not([width])').length"))

    def open_details(self):
        """Opens what is folded; the browser tells the page so, which then fills it, some time later."""
        self.script("for (const box of document.querySelectorAll('details')) box.open = true")
        self.wait(lambda: not self.script("return document.querySelectorAll('details > summary:last-child').length"))

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def texts(self, selector):
        return [found.text for found in self.all(selector)]

    def table(self, key):
        """The box of the table whose key begins so."""
        return self.one(f'[data-table^="{key}"]')

    def column(self, key, name):
        """The cells of a column, the column by its id."""
        return self.script("""
            const box = document.querySelector('[data-table^="' + arguments[0] + '"]');
            const headers = [...box.querySelectorAll('thead th')];
            const at = headers.findIndex((header) => header.dataset.column === arguments[1]);
            return [...box.querySelectorAll('tbody tr')].map((row) => row.children[at].innerText);""", key, name)

    def sort_button(self, key, name):
        return self.table(key).find_element(By.CSS_SELECTOR, f'th[data-column="{name}"] button')


def main():
    missing = [name for name, there in (("chromium", CHROMIUM), ("chromium-driver", DRIVER), ("python3-selenium", webdriver),
                                        ("PASCALINE_RENDER_REPORT", os.environ.get("PASCALINE_RENDER_REPORT"))) if not there]
    if missing:
        print(f"skipped: missing {', '.join(missing)} (scripts/setup.sh --dev brings them on Debian)")
        sys.exit(77)
    unittest.main()
