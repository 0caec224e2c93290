"""Everything by keyboard alone, and what assistive technology is told."""

import sample_document
from browser import BrowserTest, By, main

PAGES = ["#/overview", "#/kernels/matmul", "#/problem/3", "#/thermal", "#/failures", "#/comparison"]


class KeyboardTest(BrowserTest):
    document = sample_document.full()

    def press(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains
        ActionChains(self.browser).send_keys(*keys).perform()

    def active(self):
        return self.browser.switch_to.active_element

    def tab_to(self, wanted, most=200):
        from selenium.webdriver.common.keys import Keys
        for _ in range(most):
            self.press(Keys.TAB)
            found = []
            self.wait(lambda: found.append(wanted(self.active())) or found)
            if found[-1]:
                return self.active()
        self.fail("not reached by Tab")

    def arrived(self, shown):
        """The next page is there, and has taken the focus: only from then on it stays where keys put it."""
        self.wait(shown)
        self.wait(lambda: self.active().tag_name == "main")

    def test_skip_link_comes_first_and_is_seen(self):
        from selenium.webdriver.common.keys import Keys
        self.open()
        self.press(Keys.TAB)
        self.assertEqual(self.active().text, "Skip to the content")
        self.assertGreaterEqual(self.active().rect["x"], 0)
        self.press(Keys.ENTER)
        self.wait(lambda: self.active().tag_name == "main")
        self.assertIn("Night of the card", self.one("h1").text)

    def test_pages_tables_and_explorer_without_a_mouse(self):
        from selenium.webdriver.common.keys import Keys
        self.open()
        self.tab_to(lambda node: node.text == "Kernels")
        self.press(Keys.ENTER)
        self.arrived(lambda: self.one("h1").text == "Kernels")
        self.assertEqual(self.one("nav a[aria-current=page]").text, "Kernels")
        self.tab_to(lambda node: node.text == "matmul")
        self.press(Keys.ENTER)
        self.arrived(lambda: self.one("h1").text == "matmul")
        self.tab_to(lambda node: node.tag_name == "button" and node.text.startswith("Speedup"))
        self.press(Keys.SPACE)
        self.wait(lambda: self.sort_button("problems", "speedup").find_element(By.XPATH, "..").get_attribute("aria-sort") ==
                  "descending")
        self.wait(lambda: self.active().text.startswith("Speedup"))
        self.tab_to(lambda node: node.tag_name == "a" and node.text.startswith("M="))
        self.press(Keys.ENTER)
        self.arrived(lambda: self.all(".compared"))
        before = len(self.all(".compared thead th"))
        box = self.tab_to(lambda node: node.get_attribute("type") == "checkbox" and not node.is_selected())
        name = box.get_attribute("data-focus")
        self.press(Keys.SPACE)
        self.wait(lambda: len(self.all(".compared thead th")) == before + 1)
        self.wait(lambda: self.active().get_attribute("data-focus") == name)
        self.wait(lambda: self.active().is_selected())

    def test_focus_is_always_seen(self):
        from selenium.webdriver.common.keys import Keys
        for page in ("#/overview", "#/comparison"):
            self.open(page)
            for _ in range(30):
                self.press(Keys.TAB)
                if self.active().tag_name == "body":
                    break
                style = self.script("const style = getComputedStyle(document.activeElement);"
                                    "return [style.outlineStyle, parseFloat(style.outlineWidth)]")
                self.assertNotEqual(style[0], "none", self.active().text)
                self.assertGreaterEqual(style[1], 1)

    def test_typing_into_a_filter_keeps_the_cursor(self):
        self.open("#/failures")
        box = self.table("failures").find_element(By.CSS_SELECTOR, "input")
        box.click()
        self.press(*"illegal")
        self.wait(lambda: self.active().get_attribute("value") == "illegal")

    def test_everything_has_a_name(self):
        for page in PAGES:
            self.open(page)
            self.open_details()
            found = self.script("""
                const nameless = (selector, named) => [...document.querySelectorAll(selector)].filter((node) => !named(node))
                  .map((node) => node.outerHTML.slice(0, 120));
                return {
                  tables: nameless('table', (node) => node.caption && node.caption.innerText.trim()),
                  headers: nameless('th', (node) => node.scope),
                  charts: nameless('canvas, svg', (node) => node.getAttribute('role') === 'img' && node.getAttribute('aria-label')),
                  controls: nameless('input, select', (node) => node.labels.length && node.labels[0].innerText.trim()),
                  buttons: nameless('button, a', (node) => node.innerText.trim() || node.textContent.trim()),
                  sorts: nameless('th[data-column]', (node) => node.hasAttribute('aria-sort')),
                  boxes: nameless('.scroll', (node) => node.tabIndex === 0 && node.getAttribute('aria-label')),
                  headings: [...document.querySelectorAll('h1')].length === 1 ? [] : ['h1'],
                  ids: [...document.querySelectorAll('[id]')].map((node) => node.id).filter((id, i, all) => all.indexOf(id) !== i),
                };""")
            self.assertEqual({kind: these for kind, these in found.items() if these}, {}, page)
        self.assertEqual(self.script("return document.documentElement.lang"), "en")


if __name__ == "__main__":
    main()
