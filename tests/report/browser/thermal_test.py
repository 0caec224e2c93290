"""The thermal log: nights and sessions, states, readings, discarded samples."""

import sample_document
from browser import BrowserTest, By, main


class ThermalTest(BrowserTest):
    document = sample_document.full()

    def rows(self, caption):
        """Rows of the table whose caption begins so, by their first cell."""
        lines = self.script("""
            const found = [...document.querySelectorAll('table')].find((one) => one.caption.innerText.startsWith(arguments[0]));
            return found ? [...found.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.innerText)) : []""", caption)
        return {line[0]: [cell.replace("\u00a0", " ") for cell in line[1:]] for line in lines}

    def choose(self, text):
        select = self.one("main select")
        next(option for option in select.find_elements(By.TAG_NAME, "option") if text in option.text).click()

    def test_the_night_of_several_sessions_is_shown_at_first(self):
        self.open("#/thermal")
        self.assertIn("2 sessions", self.one("main select option:checked").text)
        self.assertEqual(self.texts("figcaption strong"), ["Temperature, °C", "SM clock, MHz", "Memory clock, MHz", "Power, W",
                                                            "Canary kernel, µs", "Discarded samples"])
        self.assertEqual(self.rows("Discarded samples by reason"), {"thermal throttle": ["122", "0.1 %"], "clock drift": ["24", "0.0 %"]})

    def test_a_clock_that_jumped_is_borne(self):
        for far in (9.0e15, 9.2e18):
            document = sample_document.full()
            document["sessions"][0]["telemetry"]["unix_ms"][-1] = far
            self.open("#/thermal", self.write(document, "far.html"))
            self.draw_all()
            self.assertEqual(len(self.texts("figcaption strong")), 6)

    def test_one_session_can_be_chosen(self):
        self.open("#/thermal")
        self.choose("#1, ")
        self.assertIn("7 h 59 min", self.one("main").text.replace("\u00a0", " "))
        self.assertEqual(self.rows("Discarded samples by reason")["thermal throttle"][0], "61")
        self.assertEqual([name.strip() for name in self.texts(".key li")], ["preheating", "measuring", "settling", "cooling"])
        states = self.rows("States of the governor")
        logged = self.document["sessions"][0]["telemetry"]["states"]
        for name in ("preheating", "measuring", "settling", "cooling"):
            self.assertEqual(int(states[name][0]), sum(one["state"] == name for one in logged), name)
        readings = self.rows("Readings")
        clocks = self.document["sessions"][0]["telemetry"]["sm_clock_mhz"]
        self.assertEqual(readings["SM clock"], [f"{min(clocks)} MHz", "1708 MHz", "1708 MHz"])

    def test_a_session_is_linked_from_the_overview(self):
        self.open()
        self.table("sessions").find_element(By.LINK_TEXT, "#2").click()
        self.wait(lambda: self.one("h1").text == "Thermal log")
        self.assertTrue(self.one("main select option:checked").text.startswith("#2, "))

    def test_a_session_without_readings_says_so(self):
        self.open("#/thermal/3")
        self.assertIn("This session has no readings", self.one("main").text)

    def test_sessions_far_apart_are_no_night(self):
        document = sample_document.full()
        later = document["sessions"][1]
        shift = 48 * 3_600_000
        later["started_unix_ms"] += shift
        later["finished_unix_ms"] += shift
        self.open("#/thermal", self.write(document, "apart.html"))
        self.assertTrue(self.one("main select option:checked").text.startswith("#2, "))
        self.assertFalse(any("sessions" in text for text in self.texts("main select option")))

    def test_discarded_samples_are_a_table_too(self):
        self.open("#/thermal/1")
        self.one("figure details summary").click()
        self.wait(lambda: self.rows("Discarded samples by time"))
        self.assertEqual(sum(int(cells[-1]) for cells in self.rows("Discarded samples by time").values()),
                         sum(one["count"] for one in self.document["sessions"][0]["telemetry"]["discarded"]))


if __name__ == "__main__":
    main()
