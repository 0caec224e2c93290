"""The page loads from disk without a word on the console or to the network, and nothing in the document can be markup."""

import re

import sample_document
from browser import BrowserTest, main, render

PAGES = ["#/overview", "#/kernels", "#/thermal", "#/failures", "#/comparison", "#/problem/0", "#/problem/12"]


def kernel_pages(document):
    from urllib.parse import quote
    names = {kernel["name"] for context in document["contexts"] for kernel in context["kernels"]}
    return ["#/kernels/" + quote(name, safe="") for name in sorted(names)]


class LoadingTest(BrowserTest):
    document = sample_document.full()

    def test_loads_without_console_message_or_network_request(self):
        self.open()
        for page in PAGES + kernel_pages(self.document):
            self.go(page)
            self.wait(lambda: self.script("return document.querySelectorAll('main h1').length === 1"))
            self.open_details()
            self.draw_all()
        requests = [message["params"]["request"]["url"] for message in self.logs()
                    if message["method"] == "Network.requestWillBeSent"]
        beyond = [url for url in requests if not url.startswith(("data:", "about:")) and url != self.page.as_uri()]
        self.assertEqual([url for url in beyond if not url.startswith(self.page.as_uri() + "#")], [])

    def test_policy_forbids_all_but_the_page_itself(self):
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', self.page.read_text()).group(1)
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        self.assertNotIn("connect-src", policy)
        self.assertIn("connect-src 'self'", render(sample_document.empty(live=True)))

    def test_charts_are_drawn(self):
        self.open("#/problem/0")
        self.draw_all()
        blank = self.script("""
            return [...document.querySelectorAll('main canvas')].filter((canvas) => {
              const empty = document.createElement('canvas');
              empty.width = canvas.width;
              empty.height = canvas.height;
              return canvas.toDataURL() === empty.toDataURL();
            }).map((canvas) => canvas.getAttribute('aria-label'))""")
        self.assertEqual(blank, [])
        self.assertGreater(len(self.all("main canvas")), 6)

    def test_figures_of_the_overview_are_the_documents(self):
        self.open()
        text = self.one("main").text
        for expected in ("GeForce GTX 1080", "nvrtc 12.9", "qwen3-vl-2b", "1.56×", "1.530×–1.590×", "99.3 %", "28 of 31", "16 h 0 min"):
            self.assertIn(expected, text.replace("\u00a0", " "))
        self.open_details()
        self.wait(lambda: "softmax ROWS=8192 N=512" in self.one("main").text)

    def test_chart_licence_stays_in_the_page(self):
        text = self.page.read_text()
        self.assertIn("Permission is hereby granted, free of charge", text)
        self.assertIn("Chart.js v3", text)


class EscapingTest(BrowserTest):
    """Every name holds markup that would change the title or make an element if it were not text."""

    document = sample_document.full(markup=True)

    def test_markup_stays_text_on_every_page(self):
        self.open()
        for page in PAGES + kernel_pages(self.document):
            self.go(page)
            self.open_details()
            found = self.script("""return {title: document.title, images: document.images.length,
                bold: document.querySelectorAll('b, i:not([aria-hidden])').length, injected: document.getElementById('injected'),
                scripts: document.scripts.length, text: document.querySelector('main').innerText}""")
            self.assertNotEqual(found["title"], "injected", page)
            self.assertEqual((found["images"], found["bold"], found["injected"], found["scripts"]), (0, 0, None, 3), page)
            self.assertIn("<", found["text"], page)
        self.assertNotIn("could not be shown", found["text"])

    def test_kernels_name_is_shown_as_it_is(self):
        self.open("#/kernels")
        name = self.document["contexts"][0]["kernels"][0]["name"]
        self.assertIn(name.split(" ")[1].strip(), self.one("main").text)
        self.one("main tbody a").click()
        self.wait(lambda: self.one("h1").text.startswith("matmul"))
        self.assertEqual(self.script("return document.querySelector('h1').textContent"), name)

    def test_document_comes_back_unchanged(self):
        self.open()
        again = self.script("return JSON.parse(document.getElementById('report-document').textContent)")
        self.assertEqual(again, self.document)

    def test_title_with_markup_is_text(self):
        page = self.write(sample_document.empty(title="</title><script>document.title='injected'</script>&amp;"), "title.html")
        self.open("", page)
        self.assertIn("</title><script>", self.script("return document.querySelector('h1').textContent"))
        head = self.script("return document.head.querySelector('title').textContent")
        self.assertIn("</title><script>document.title='injected'</script>&amp;", head)


class LargeTest(BrowserTest):
    def test_large_document_loads_quickly(self):
        page = self.write(sample_document.large(12), "large.html")
        self.assertGreater(page.stat().st_size, 12_000_000)
        # A slow or busy machine needs longer to parse the document, too.
        opening_s = self.processor_s_of(lambda: self.open("#/kernels/kernel_0", page))
        self.wait(lambda: self.all("table.problems tbody tr"))
        parsing_s = self.processor_s_of(lambda: self.script("""
            const text = document.getElementById('report-document').textContent;
            for (let i = 0; i < 10; ++i) JSON.parse(text);""")) / 10
        following_s = self.processor_s_of(lambda: (self.go("#/problem/3"), self.wait(lambda: self.all("table.compared"))))
        self.assertLess(opening_s, 25 * parsing_s)
        self.assertLess(following_s, 10 * parsing_s)


if __name__ == "__main__":
    main()
