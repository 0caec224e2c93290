"""A served page takes newer documents over in place; it says so when its server is gone."""

import hashlib
import http.server
import json
import threading

import sample_document
from browser import BrowserTest, By, main, render


class Server:
    """Serves one document as the program does, on loopback; `asked` holds what came with each request for it."""

    def __init__(self, document, port=0):
        self.document = document
        self.asked = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.answer(self)

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def answer(self, request):
        body = json.dumps(self.document).encode()
        tag = '"' + hashlib.sha256(body).hexdigest()[:16] + '"'
        if request.path == "/document.json":
            known = request.headers.get("If-None-Match")
            self.asked.append(known)
            request.send_response(304 if known == tag else 200)
            request.send_header("ETag", tag)
            body = b"" if known == tag else body
        else:
            request.send_response(200)
            request.send_header("Content-Type", "text/html; charset=utf-8")
            body = render(self.document).encode()
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class LiveTest(BrowserTest):
    def setUp(self):
        super().setUp()
        self.server = Server(sample_document.full(live=True))
        self.addCleanup(lambda: self.server and self.server.stop())

    def load(self, fragment):
        self.browser.get("about:blank")
        self.browser.get(f"http://127.0.0.1:{self.server.port}/{fragment}")
        self.wait(lambda: self.all("main h1"))

    def changed(self, change):
        document = json.loads(json.dumps(self.server.document))
        change(document)
        self.server.document = document

    def test_a_newer_document_comes_in_place(self):
        self.load("#/kernels/matmul")
        box = self.table("problems").find_element(By.CSS_SELECTOR, "input[type=search]")
        box.send_keys("M=8")
        self.sort_button("problems", "speedup").click()
        self.table("problems").find_element(By.CSS_SELECTOR, "input[type=search]").click()
        self.script("scrollTo(0, 150)")
        before = self.column("problems", "trials")

        def grow(document):
            for problem in document["contexts"][0]["kernels"][0]["problems"]:
                problem["trials"] = 7777
        self.changed(grow)
        self.wait(lambda: set(self.column("problems", "trials")) == {"7777"})
        self.assertEqual(len(before), len(self.column("problems", "trials")))
        self.assertEqual(self.sort_button("problems", "speedup").find_element(By.XPATH, "..").get_attribute("aria-sort"), "descending")
        self.assertEqual(self.script("return document.activeElement.value"), "M=8")
        self.assertEqual(self.script("return scrollY"), 150)
        self.assertIn("live", self.one("#live-state").text)

    def test_a_chosen_problem_is_followed_when_its_number_moves(self):
        rows = self.server.document["contexts"][0]["kernels"][0]["problems"][3]["configurations"]["rows"]
        trials = [row["trial"] for row in rows[:3]]
        self.load("#/problem/3/" + ",".join(map(str, trials)))
        heading = self.one("h1").text
        chosen = self.texts(".compared thead th")

        def move(document):
            number = 100
            for context in document["contexts"]:
                for kernel in context["kernels"]:
                    for problem in kernel["problems"]:
                        problem["id"] = number
                        number += 1
        self.changed(move)
        self.wait(lambda: "#/problem/103" in self.browser.current_url)
        self.assertEqual(self.one("h1").text, heading)
        self.assertEqual(self.texts(".compared thead th"), chosen)

    def test_an_unchanged_document_is_not_sent_again(self):
        self.load("#/overview")
        self.wait(lambda: len(self.server.asked) >= 3)
        self.assertIsNone(self.server.asked[0])
        self.assertIsNotNone(self.server.asked[1])
        self.assertEqual(self.server.asked[1], self.server.asked[2])

    def test_says_so_when_the_server_is_gone_and_when_it_is_back(self):
        self.load("#/failures")
        self.server.stop()
        self.wait(lambda: "The server does not answer" in self.one("#live-state").text)
        self.assertIn("Failures", self.one("h1").text)
        again = Server(self.server.document, self.server.port)
        self.server = again
        self.wait(lambda: "live" in self.one("#live-state").text)
        refused = [entry for entry in self.complaints() if "ERR_CONNECTION_REFUSED" not in entry["message"]]
        self.assertEqual(refused, [])


if __name__ == "__main__":
    main()
