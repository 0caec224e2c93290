"""Tables sort by their headers and are narrowed by a text and by choices."""

import sample_document
from browser import BrowserTest, By, main


def numbers(texts):
    """The first line of each cell as a number."""
    return [float(text.split("\n")[0].split("\u00a0")[0].replace("\u202f", "").replace("×", "")) for text in texts
            if text != "–"]


class TablesTest(BrowserTest):
    document = sample_document.full()

    def setUp(self):
        super().setUp()
        self.open("#/kernels/matmul")

    def header(self, name):
        return self.sort_button("problems", name).find_element(By.XPATH, "..")

    def test_sorts_both_ways_and_says_so(self):
        self.assertEqual(self.header("speedup").get_attribute("aria-sort"), "none")
        self.sort_button("problems", "speedup").click()
        self.assertEqual(self.header("speedup").get_attribute("aria-sort"), "descending")
        falling = self.column("problems", "speedup")
        self.assertEqual(numbers(falling), sorted(numbers(falling), reverse=True))
        self.sort_button("problems", "speedup").click()
        self.assertEqual(self.header("speedup").get_attribute("aria-sort"), "ascending")
        rising = self.column("problems", "speedup")
        self.assertEqual(numbers(rising), sorted(numbers(rising)))
        self.sort_button("problems", "best").click()
        self.assertEqual(self.header("speedup").get_attribute("aria-sort"), "none")

    def test_phases_of_the_model_sort_too(self):
        self.open("#/overview")
        self.sort_button("phases", "speedup").click()
        speedups = self.column("phases", "speedup")
        self.assertEqual(speedups[-1], "–", "the phase without a tuned problem")
        self.assertEqual(numbers(speedups), sorted(numbers(speedups), reverse=True))
        self.sort_button("phases", "tuned").click()
        self.assertTrue(self.column("phases", "tuned")[-1].startswith("0 of"))

    def test_compilers_have_a_column_each(self):
        self.open("#/overview")
        self.assertIn("Compilers on GeForce GTX 1080", self.script("return document.body.innerText"))
        self.assertEqual(numbers(self.column("compilers", "compiler1")), [100, 90])
        self.assertEqual(self.column("compilers", "compiler0")[1], "–", "it has no time of that problem")
        self.assertEqual(self.column("compilers", "fastest"), ["nvrtc 12.9", "nvrtc 11.8"])

    def test_devices_have_a_column_each(self):
        self.open("#/devices")
        self.assertIn("Tesla P40", self.script("return document.body.innerText"))
        self.assertEqual(numbers(self.column("devices", "best1")), [700, 900])
        self.assertEqual(self.column("devices", "best0")[1], "–", "it has no time of that problem")
        self.assertEqual(self.column("devices", "same")[1], "yes")
        self.assertIn("By device", self.one("#navigation").text)

    def test_unknown_values_come_last_either_way(self):
        for _ in range(2):
            self.sort_button("problems", "best").click()
            cells = self.column("problems", "best")
            self.assertEqual(cells[-1], "–")
            self.assertEqual(cells.count("–"), 1)

    def test_texts_with_numbers_sort_by_the_numbers(self):
        self.sort_button("problems", "problem").click()
        sizes = [int(text.split("M=")[1].split(" ")[0]) for text in self.column("problems", "problem")]
        self.assertEqual(sizes, sorted(sizes))

    def test_filters_by_text(self):
        box = self.table("problems").find_element(By.CSS_SELECTOR, "input[type=search]")
        total = len(self.column("problems", "problem"))
        box.send_keys("m=16 n=4096")
        shown = self.column("problems", "problem")
        self.assertTrue(0 < len(shown) < total)
        self.assertTrue(all("M=16 N=4096" in text for text in shown))
        self.assertIn(f"{len(shown)} of {total}", self.table("problems").find_element(By.CSS_SELECTOR, "output").text)
        box.send_keys("nothing like it")
        self.assertEqual(self.column("problems", "problem"), ["No row matches the filters."])

    def test_filters_by_state(self):
        select = self.table("problems").find_element(By.CSS_SELECTOR, "select")
        every = self.column("problems", "problem")
        select.find_element(By.CSS_SELECTOR, "option[value=undecided]").click()
        undecided = self.column("problems", "problem")
        self.assertTrue(all("undecided" in text or "nothing usable" in text for text in undecided))
        select.find_element(By.CSS_SELECTOR, "option[value=decided]").click()
        decided = self.column("problems", "problem")
        self.assertEqual(len(decided) + len(undecided), len(every))
        self.assertFalse(any("undecided" in text for text in decided))

    def test_choices_last_while_pages_come_and_go(self):
        self.table("problems").find_element(By.CSS_SELECTOR, "input[type=search]").send_keys("M=32")
        self.sort_button("problems", "speedup").click()
        before = self.column("problems", "problem")
        self.go("#/overview")
        self.go("#/kernels/matmul")
        self.assertEqual(self.column("problems", "problem"), before)
        self.assertEqual(self.header("speedup").get_attribute("aria-sort"), "descending")

    def test_two_tables_of_a_page_do_not_share_their_state(self):
        boxes = self.all('[data-table^="problems"]')
        self.assertGreater(len(boxes), 1)
        boxes[0].find_element(By.CSS_SELECTOR, "input").send_keys("none of them")
        self.assertGreater(len(boxes[1].find_elements(By.CSS_SELECTOR, "tbody tr a")), 0)

    def test_comparison_is_narrowed_to_changes(self):
        self.go("#/comparison")
        select = self.table("comparison").find_element(By.CSS_SELECTOR, "select")
        select.find_element(By.CSS_SELECTOR, "option[value=changes]").click()
        verdicts = self.column("comparison", "verdict")
        self.assertEqual(len(verdicts), 10)
        self.assertTrue(all(text in ("▲ faster", "▼ slower") for text in verdicts))
        select.find_element(By.CSS_SELECTOR, "option[value=vanished]").click()
        self.assertEqual(set(self.column("comparison", "now")), {"–"})

    def test_comparison_begins_with_what_changed_most(self):
        self.go("#/comparison")
        self.table("comparison").find_element(By.CSS_SELECTOR, "select option[value=changes]").click()
        rows = list(zip(self.column("comparison", "ratio"), self.column("comparison", "verdict")))
        for verdict, sign in (("slower", 1), ("faster", -1)):
            ratios = numbers([ratio for ratio, text in rows if verdict in text])
            self.assertGreater(len(set(ratios)), 1)
            self.assertEqual(ratios, sorted(ratios, key=lambda ratio: sign * ratio))

    def test_the_model_as_a_whole_is_above_its_phases(self):
        self.open("#/overview")
        tile = self.one(".context .tiles li").text
        for text in ("STORAGE=float32", "1.56×", "1.530×–1.590×", "99.3 %", "812.3 ms to 521.2 ms", "28 of 31 problems tuned"):
            self.assertIn(text, tile)

    def test_failures_are_grouped_and_found_by_reason(self):
        self.go("#/failures")
        self.assertEqual(numbers(self.column("failures", "count")), [210, 44, 7, 2, 1])
        self.table("failures").find_element(By.CSS_SELECTOR, "input").send_keys("illegal")
        self.assertEqual(self.column("failures", "status"), ["crashed"])
        self.assertIn("And 13 trials with rarer reasons", self.one("main").text)


class ShapeTextTest(BrowserTest):
    def shapes(self, *sizes):
        document = sample_document.full()
        kernel = document["contexts"][1]["kernels"][0]
        kernel["problems"] = [{**kernel["problems"][0], "id": 1000 + number, "dimensions": one, "types": {}}
                              for number, one in enumerate(sizes)]
        self.open("#/kernels/matmul", self.write(document, "shapes.html"))
        return [row.find_element(By.CSS_SELECTOR, "a").text
                for row in self.all('[data-table^="problems"]')[-1].find_elements(By.CSS_SELECTOR, "tbody tr")]

    def test_what_all_shapes_share_is_told_once(self):
        self.assertEqual(self.shapes({"M": 1, "N": 2, "K": 3}, {"M": 4, "N": 2, "K": 5}), ["M=1 K=3", "M=4 K=5"])
        self.assertIn("All shapes have N=2.", self.one("main").text)

    def test_a_shape_alone_is_told_as_a_whole(self):
        self.assertEqual(self.shapes({"M": 1, "N": 2}), ["M=1 N=2"])

    def test_a_shape_is_never_without_text(self):
        self.assertEqual(self.shapes({"M": 64}, {"M": 64, "N": 2}), ["M=64", "N=2"])

    def test_names_that_every_object_has_are_names(self):
        self.assertEqual(self.shapes({"constructor": 1, "toString": 2}, {"constructor": 3, "toString": 2}),
                         ["constructor=1", "constructor=3"])


class LongTableTest(BrowserTest):
    def test_a_long_table_shows_a_part_until_asked(self):
        document = sample_document.full()
        problems = document["contexts"][1]["kernels"][0]["problems"]
        for number in range(300):
            problems.append({**problems[0], "id": 1000 + number, "text": f"matmul M={number} N=1 K=1"})
        self.open("#/kernels/matmul", self.write(document, "long.html"))
        box = self.all('[data-table^="problems"]')[-1]
        self.assertEqual(len(box.find_elements(By.CSS_SELECTOR, "tbody tr")), 25)
        box.find_element(By.CSS_SELECTOR, ".more button").click()
        self.assertEqual(len(box.find_elements(By.CSS_SELECTOR, "tbody tr")), 302)
        self.assertEqual(self.script("return document.activeElement.getAttribute('role')"), "region")


if __name__ == "__main__":
    main()
