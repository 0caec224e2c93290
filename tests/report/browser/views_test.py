"""Dark, narrow and on paper."""

import base64

import sample_document
from browser import BrowserTest, By, main

PAGES = ["#/overview", "#/kernels", "#/kernels/matmul", "#/problem/0", "#/problem/12", "#/thermal", "#/failures", "#/devices", "#/comparison"]

CONTRAST = """
    const light = (text) => {
      const parts = text.match(/[\\d.]+/g).slice(0, 3).map((value) => value / 255)
        .map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
      return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
    };
    const behind = (node) => {
      for (let at = node; at; at = at.parentElement) {
        const colour = getComputedStyle(at).backgroundColor;
        if (!/, 0\\)$/.test(colour) && colour !== 'transparent') return colour;
      }
      return 'rgb(255, 255, 255)';
    };
    const poor = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode.parentElement;
      if (!walker.currentNode.data.trim() || !node.offsetParent || node.closest('script, svg')) continue;
      const [a, b] = [light(getComputedStyle(node).color), light(behind(node))].sort((x, y) => y - x);
      const ratio = (a + 0.05) / (b + 0.05);
      if (ratio < 4.5) poor.push(node.tagName + ' ' + node.className + ' ' + ratio.toFixed(2) + ' ' + walker.currentNode.data.slice(0, 30));
    }
    return poor;"""


class ThemeTest(BrowserTest):
    document = sample_document.full()

    def theme(self):
        return self.script("return document.documentElement.dataset.theme")

    def background(self):
        return self.script("return getComputedStyle(document.body).backgroundColor")

    def test_follows_the_system_at_once(self):
        self.open()
        self.assertEqual((self.theme(), self.background()), ("light", "rgb(255, 255, 255)"))
        self.media("dark")
        self.wait(lambda: self.theme() == "dark")
        self.assertEqual(self.background(), "rgb(20, 23, 27)")

    def test_the_switch_wins_and_is_remembered(self):
        self.open()
        switch = self.one("#theme")
        self.assertEqual(switch.text, "Theme: auto")
        switch.click()
        switch.click()
        self.assertEqual((switch.text, self.theme()), ("Theme: dark", "dark"))
        self.open("#/failures")
        self.assertEqual(self.theme(), "dark")
        self.one("#theme").click()
        self.assertEqual(self.theme(), "light")

    def test_works_where_storage_is_refused(self):
        made = self.browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source":
            "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('refused', 'SecurityError'); }})"})
        self.addCleanup(self.browser.execute_cdp_cmd, "Page.removeScriptToEvaluateOnNewDocument", made)
        self.open()
        self.one("#theme").click()
        self.one("#theme").click()
        self.assertEqual(self.theme(), "dark")

    def test_text_is_readable_in_both(self):
        for scheme in ("light", "dark"):
            self.media(scheme)
            for page in PAGES:
                self.open(page)
                self.assertEqual(self.script(CONTRAST), [], f"{scheme} {page}")


class NarrowTest(BrowserTest):
    document = sample_document.full()

    def check_page(self, page):
        self.draw_all()
        width = self.script("return document.documentElement.clientWidth")
        self.assertLessEqual(self.script("return document.documentElement.scrollWidth"), width, page)
        beyond = self.script("""
            return [...document.querySelectorAll('body *')].filter((node) => !node.closest('.scroll, .skip') &&
              node.getBoundingClientRect().right > innerWidth + 0.5).map((node) => node.tagName + '.' + node.className)""")
        self.assertEqual(beyond, [], page)

    def test_no_page_is_wider_than_a_phone(self):
        for width in (390, 320):
            self.resize(width, 844)
            for page in PAGES:
                self.open(page)
                self.check_page(page)
                self.resize(width, 844)

    def test_neither_with_long_names_and_markup(self):
        page = self.write(sample_document.full(markup=True), "markup.html")
        for fragment in PAGES:
            self.resize(390, 844)
            self.open(fragment, page)
            self.check_page(fragment)

    def test_wide_tables_scroll_in_their_own_box(self):
        self.resize(390, 844)
        self.open("#/kernels/matmul")
        box = self.table("problems").find_element(By.CSS_SELECTOR, ".scroll")
        self.assertGreater(self.script("return arguments[0].scrollWidth", box), self.script("return arguments[0].clientWidth", box))
        self.script("arguments[0].scrollLeft = 200", box)
        self.assertEqual(self.script("return arguments[0].scrollLeft", box), 200)

    def test_what_is_pressed_is_large_enough(self):
        self.resize(390, 844)
        self.open()
        small = self.script("""
            return [...document.querySelectorAll('nav a, button:not(.sort), select, input[type=search]')]
              .filter((node) => node.getBoundingClientRect().height < 30).map((node) => node.textContent)""")
        self.assertEqual(small, [])


class PaperTest(BrowserTest):
    document = sample_document.full()

    def test_paper_is_light_and_without_controls(self):
        self.media("dark")
        self.open("#/problem/0")
        self.assertEqual(self.script("return document.documentElement.dataset.theme"), "dark")
        self.media("dark", kind="print")
        self.wait(lambda: self.script("return document.documentElement.dataset.theme") == "light")
        for selector in ("#navigation", "#theme", ".control", ".skip"):
            shown = self.script("return [...document.querySelectorAll(arguments[0])].filter((node) => node.offsetParent).length", selector)
            self.assertEqual(shown, 0, selector)
        # All charts are drawn without being scrolled to, and tables stand open in full.
        self.assertEqual(self.script("return document.querySelectorAll('main canvas:not([width])').length"), 0)
        self.assertEqual(self.script("""
            return [...document.querySelectorAll('main canvas, main svg')].filter((node) => node.getBoundingClientRect().right > 681).length"""), 0)
        cut = self.script("return [...document.querySelectorAll('.scroll')].filter((box) => getComputedStyle(box).overflowY !== 'visible').length")
        self.assertEqual(cut, 0)
        self.media("dark")
        self.wait(lambda: self.script("return document.documentElement.dataset.theme") == "dark")

    def test_paper_has_every_row_of_a_long_table(self):
        document = sample_document.full()
        problems = document["contexts"][1]["kernels"][0]["problems"]
        problems += [{**problems[0], "id": 1000 + number, "text": f"matmul M={number} N=1 K=1"} for number in range(300)]
        self.open("#/kernels/matmul", self.write(document, "long.html"))
        rows = lambda: len(self.all('[data-table^="problems"]')[-1].find_elements(By.CSS_SELECTOR, "tbody tr"))
        self.assertEqual(rows(), 25)
        self.media(kind="print")
        self.wait(lambda: rows() == 302)

    def test_paper_says_that_a_table_was_narrowed(self):
        self.open("#/kernels/matmul")
        self.one('[data-table^="problems"] input[type=search]').send_keys("m=16 n=4096")
        self.media(kind="print")
        shown = lambda selector: self.script("return getComputedStyle(document.querySelector(arguments[0])).display",
                                             '[data-table^="problems"] ' + selector)
        self.wait(lambda: shown(".control") == "none")
        self.assertNotEqual(shown(".tally"), "none")
        self.assertIn(" of ", self.one('[data-table^="problems"] .tally').text)

    def test_prints(self):
        self.open("#/kernels/matmul")
        pdf = base64.b64decode(self.browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})["data"])
        self.assertTrue(pdf.startswith(b"%PDF"))
        self.assertGreater(len(pdf), 50_000)
        self.wait(lambda: self.one("#navigation").is_displayed())


if __name__ == "__main__":
    main()
