"""The page of a problem: configurations side by side, samples, searches, effects of parameters, pairs."""

import sample_document
from browser import BrowserTest, By, main


class ExplorerTest(BrowserTest):
    document = sample_document.full()

    def setUp(self):
        super().setUp()
        self.open("#/problem/3")
        self.problem = self.document["contexts"][0]["kernels"][0]["problems"][3]
        self.rows = self.problem["configurations"]["rows"]

    def compared(self):
        """The lines of the table of chosen configurations, by their names."""
        lines = self.script("return [...document.querySelectorAll('.compared tr')].map((row) => "
                            "[...row.children].map((cell) => cell.innerText))")
        return {line[0]: line[1:] for line in lines}

    def test_time_and_energy_are_plotted_where_both_are_known(self):
        pareto = self.problem["pareto"]
        self.assertIn("Time and energy", self.texts("h2"))
        self.assertIn("20.0 % less energy", self.one("main").text)
        self.draw_all()
        self.open_details()
        numbers = self.script("""
            const found = [...document.querySelectorAll('figure')].find((one) => one.innerText.startsWith('Energy against time'));
            return [...found.querySelectorAll('tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText))""")
        self.assertEqual(len(numbers), len(pareto["points"]))
        self.assertEqual([row[3] for row in numbers], ["yes" if point["front"] else "no" for point in pareto["points"]])
        self.assertEqual(sum("winner by energy" in row[4] for row in numbers), 1)
        document = sample_document.full()
        del document["contexts"][0]["kernels"][0]["problems"][3]["pareto"]
        self.open("#/problem/3", self.write(document, "no_energy.html"))
        self.assertNotIn("Time and energy", self.texts("h2"))

    def tick(self, trial):
        self.script("[...document.querySelectorAll('input[type=checkbox]')].find((box) => "
                    "box.dataset.focus === 'choose ' + arguments[0]).click()", trial)

    def test_best_and_default_are_compared_at_first(self):
        best = next(row for row in self.rows if row["best"])
        default = next(row for row in self.rows if row["default"])
        lines = self.compared()
        self.assertEqual(lines["Trial"], [f"#{best['trial']} (best)", f"#{default['trial']} (default)"])
        self.assertEqual(float(lines["Time relative to the fastest of these"][1]), round(default["median_us"] / best["median_us"], 3))
        names = self.problem["configurations"]["columns"]
        differing = {name for name, a, b in zip(names, best["values"], default["values"]) if a != b}
        marked = self.script("return [...document.querySelectorAll('.compared tr.differs th')].map((cell) => cell.innerText)")
        self.assertEqual(set(marked), differing)
        for name in set(names) - differing:
            self.assertNotIn(name, lines)

    def test_two_chosen_configurations_are_side_by_side(self):
        best = next(row for row in self.rows if row["best"])
        default = next(row for row in self.rows if row["default"])
        others = [row for row in self.rows if row["status"] == "ok" and not row["best"] and not row["default"]][:2]
        for row in (best, default, *others):
            self.tick(row["trial"])
        lines = self.compared()
        self.assertEqual(lines["Trial"], [f"#{row['trial']}" for row in others])
        self.assertEqual(lines["Registers per thread"], [str(row["registers"]) for row in others])
        self.assertEqual(lines["SM clock"], ["1708 MHz".replace(" ", "\u00a0")] * 2)
        for name in ("Median", "Shared memory per block", "Occupancy", "Local memory per thread (spills)", "Temperature", "Power"):
            self.assertEqual(len(lines[name]), 2, name)
            self.assertNotIn("–", lines[name], name)
        self.assertEqual(len(self.all("figure canvas[aria-label^='Samples']")), 1)
        self.assertIn(f"/{others[0]['trial']},{others[1]['trial']}", self.browser.current_url)

    def test_the_address_chooses(self):
        wanted = [row["trial"] for row in self.rows[:3]]
        self.open(f"#/problem/3/{wanted[0]},{wanted[1]},{wanted[2]},999999,nonsense")
        self.assertEqual([name.split(" ")[0] for name in self.compared()["Trial"]], [f"#{trial}" for trial in wanted])

    def test_same_parameters_are_shown_on_request(self):
        self.assertNotIn("UNROLL", self.compared())
        self.script("[...document.querySelectorAll('label')].find((label) => label.innerText.includes('that are the same')).click()")
        self.assertEqual(self.compared()["UNROLL"], ["4", "4"])

    def test_a_best_that_is_the_default_is_not_compared_with_itself(self):
        document = sample_document.full()
        rows = document["contexts"][0]["kernels"][0]["problems"][3]["configurations"]["rows"]
        best = next(row for row in rows if row["best"])
        for row in rows:
            row["default"] = row is best
        rows.insert(0, {**best, "trial": 9999, "stage": "search", "best": False})
        self.open("#/problem/3", self.write(document, "same.html"))
        first, second = self.compared()["Trial"]
        self.assertEqual(first, f"#{best['trial']} (best, default)")
        self.assertNotIn("9999", second)
        self.assertGreater(len(self.all(".compared tr.differs")), 0)

    def test_a_failed_configuration_says_why_and_has_no_time(self):
        failed = next(row for row in self.rows if row["median_us"] is None)
        best = next(row for row in self.rows if row["best"])
        self.open(f"#/problem/3/{best['trial']},{failed['trial']}")
        lines = self.compared()
        self.assertEqual(lines["Reason"], ["–", "too many registers"])
        self.assertEqual(lines["Median"][1], "–")

    def test_dropped_trials_are_usable(self):
        for choice, count in (("ok", 1), ("failed", 0)):
            self.table("configurations").find_element(By.CSS_SELECTOR, f"select option[value={choice}]").click()
            self.assertEqual(self.column("configurations", "status").count("dropped"), count)
        self.open("#/overview")
        self.assertIn("210 rejected, 44 compile failed, 7 wrong result, 2 timed out, 1 crashed", self.one(".context").text)
        self.assertNotIn("10 dropped", self.one(".context").text)
        self.open("#/failures")
        self.assertIn("usable; sampling stopped early", self.one(".context table").text)

    def test_one_too_many_unticks_the_first_and_says_so(self):
        trials = [row["trial"] for row in self.rows]
        self.assertGreater(len(trials), 9)
        self.open("#/problem/3/" + ",".join(map(str, trials[:8])))
        said = self.one("output.unticked")
        self.assertEqual(said.text, "")
        self.tick(trials[8])
        self.assertEqual(said.text, f"#{trials[0]} was unticked: at most 8 can be compared.")
        self.assertEqual([name.split(" ")[0] for name in self.compared()["Trial"]], [f"#{trial}" for trial in trials[1:9]])
        self.tick(trials[8])
        self.assertEqual(said.text, "")

    def test_many_chosen_scroll_in_their_own_box(self):
        trials = ",".join(str(row["trial"]) for row in self.rows[:8])
        for width in (1400, 1000):
            self.resize(width, 900)
            self.open("#/problem/3/" + trials)
            self.assertEqual(len(self.compared()["Trial"]), 8)
            self.draw_all()
            self.assertLessEqual(self.script("return document.documentElement.scrollWidth"), width)

    def test_work_without_operations_has_its_bytes_told(self):
        document = sample_document.full()
        problem = document["contexts"][0]["kernels"][0]["problems"][3]
        problem.update(gflops=None, gbs=123.0)
        self.open("#/problem/3", self.write(document, "bytes.html"))
        self.assertIn("Achieved\n123\nGB/s", self.texts(".tiles li"))
        problem.update(gbs=None)
        self.open("#/problem/3", self.write(document, "nothing.html"))
        self.assertIn("Achieved\nunknown\nneeds a time and the work per launch", self.texts(".tiles li"))

    def test_none_chosen_is_said(self):
        for row in self.rows:
            if row["best"] or row["default"]:
                self.tick(row["trial"])
        self.assertIn("No configuration is ticked.", self.one("main").text)

    def test_effects_and_pairs_are_the_documents(self):
        charts = self.texts(".charts.many figcaption strong")
        expected = sorted((one for one in self.problem["parameters"] if one["effect"]), key=lambda one: -one["effect"])
        self.assertEqual(charts, [one["name"] for one in expected])
        pair = self.problem["heat"]["pairs"][1]
        name = "{} by {}".format(*(self.problem["heat"]["parameters"][pair[axis]] for axis in "yx"))
        self.script("const box = [...document.querySelectorAll('select')].find((one) => one.dataset.focus.startsWith('pair'));"
                    "box.value = arguments[0]; box.dispatchEvent(new Event('change'))", name)
        cells = self.script("return [...document.querySelectorAll('.heat tbody tr')].map((row) => "
                            "[...row.querySelectorAll('td')].map((cell) => cell.innerText))")
        shown = [[None if text == "–" else float(text) for text in row] for row in cells]
        for line, values in zip(shown, pair["best_us"]):
            for cell, value in zip(line, values):
                self.assertEqual(cell is None, value is None)
                if value is not None:
                    self.assertAlmostEqual(cell / value, 1, places=2)

    def test_lines_are_drawn_for_all_configurations_with_a_time(self):
        timed = [row for row in self.rows if row["median_us"] is not None]
        self.assertEqual(len(self.all("svg.coordinates path")), len(timed))

    def test_numbers_of_a_chart_are_a_table(self):
        self.one("figure details summary").click()
        self.wait(lambda: self.all("figure details table"))
        self.assertEqual(self.script("return document.querySelectorAll('figure details table tbody tr').length"),
                         sum(len(search["trials"]) for search in self.problem["searches"]))


class SearchesTest(BrowserTest):
    document = sample_document.full()

    def test_a_kernels_searches_are_a_mean_or_those_of_a_problem(self):
        self.open("#/kernels/matmul")
        caption = lambda: self.script("return [...document.querySelectorAll('figcaption')].find((one) => "
                                      "one.innerText.startsWith('Best so far against trials')).innerText")
        self.assertIn("Geometric mean over the problems", caption())
        self.script("const box = [...document.querySelectorAll('select')].find((one) => one.dataset.focus.startsWith('searches'));"
                    "box.selectedIndex = 1; box.dispatchEvent(new Event('change'))")
        self.assertIn("One line per search", caption())


class MeanTest(BrowserTest):
    """The mean of searches, against a hand-made example: 400 then 100 µs, and 200 µs all along."""

    def test_mean_of_searches(self):
        document = sample_document.full()
        kernel = document["contexts"][1]["kernels"][0]
        kernel["name"] = "toy"
        search = {"session": 1, "searcher": "auto", "seed": 1, "total": 10}
        kernel["problems"][0]["searches"] = [{**search, "trials": [1, 5, 10], "elapsed_s": [1, 5, 10], "best_us": [400, 100, 100]}]
        kernel["problems"][1]["searches"] = [{**search, "trials": [2, 10], "elapsed_s": [2, 10], "best_us": [200, 200]}]
        self.open("#/kernels/toy", self.write(document, "toy.html"))
        self.script("[...document.querySelectorAll('figure')].find((one) => one.innerText.includes('against trials'))"
                    ".querySelector('summary').click()")
        rows = self.wait(lambda: self.script("return [...document.querySelectorAll('figure details[open] tbody tr')].map((row) => "
                                             "[...row.children].slice(1).map((cell) => Number(cell.innerText)))"))
        self.assertEqual(rows[0], [2, 2])  # the geometric mean of 4 and 1, from where both have something
        self.assertEqual([row for row in rows if row[0] == 4], [[4, 2]])
        self.assertEqual([row for row in rows if row[0] == 5], [[5, 1]])
        self.assertEqual(rows[-1], [10, 1])


if __name__ == "__main__":
    main()
