"""Runs scripts/check_includes.py on small projects of its own, and on this one."""
import pathlib
import subprocess
import sys
import tempfile

try:
    import unittest
except ImportError:
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "check_includes.py"


def check(files):
    """Exit code and output for a project of these files, each a text."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "init", "-q", folder], check=True)
        for name, text in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        result = subprocess.run([sys.executable, SCRIPT, "--root", folder], capture_output=True, text=True)
    return result.returncode, result.stdout + result.stderr


def project(**includes):
    """A header in each folder that the includes name, and the includes: core="db" is one from core/ of db/."""
    names = ("core", "db", "runtime", "model/text", "tuner", "report", "app", "cli", "python/src", "tests", "kernel_templates")
    files = {f"{name}/a.hpp": "#pragma once\n" for name in names}
    for source, target in includes.items():
        files[f"{source.replace('_in_', '/')}/b.cpp"] = f'#include <string>\n#include "{target}/a.hpp"\n'
    return files


class CheckIncludesTest(unittest.TestCase):
    def test_this_project_is_in_order(self):
        if not (ROOT / ".git").exists():
            self.skipTest("not a clone")
        result = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_includes_downward_are_fine(self):
        code, output = check(project(db="core", runtime="db", tuner="model/text", report="db", cli="tuner", tests="cli"))
        self.assertEqual(code, 0, output)
        self.assertEqual(check(project(python_in_src="app", cli="app"))[0], 0)

    def test_an_include_that_points_up_is_named(self):
        upward = {"core": "db", "db": "runtime", "runtime": "tuner", "report": "runtime", "tuner": "report", "cli": "python/src", "tuner_in_x": "tests"}
        for source, target in upward.items():
            code, output = check(project(**{source: target}))
            self.assertEqual(code, 1, source)
            self.assertIn(f"{source.replace('_in_', '/')}/b.cpp:2: includes {target}/a.hpp", output)
        code, output = check(project(runtime_in_ops="model/text"))
        self.assertIn("runtime/ops/b.cpp:2: includes model/text/a.hpp, but runtime may include only core, db", output)

    def test_every_spelling_of_an_include_counts(self):
        for spelling in ('# include <cli/a.hpp>', '#include "../cli/a.hpp"', '  #include "core/../cli/a.hpp"'):
            code, output = check({**project(), "core/b.hpp": f"{spelling}\n"})
            self.assertEqual(code, 1, spelling)
            self.assertIn("core/b.hpp:1: includes cli/a.hpp", output)
        self.assertEqual(check({**project(), "core/b.hpp": '// #include "cli/a.hpp"\n'})[0], 0)

    def test_a_circle_is_shown_whole(self):
        code, output = check({"core/a.hpp": '#include "core/b.hpp"\n', "core/b.hpp": '#include "core/c.hpp"\n', "core/c.hpp": '#include "a.hpp"\n'})
        self.assertEqual(code, 1)
        self.assertIn("include circle: core/a.hpp -> core/b.hpp -> core/c.hpp -> core/a.hpp", output)

    def test_folders_side_by_side_do_not_include_each_other(self):
        files = {"tuner/x/a.hpp": "", "tuner/xy/a.hpp": "", "tuner/x/b.cpp": '#include "tuner/xy/a.hpp"\n'}
        self.assertEqual(check(files)[0], 0)
        code, output = check({**files, "tuner/xy/b.cpp": '#include "tuner/x/a.hpp"\n'})
        self.assertEqual(code, 1)
        self.assertIn("tuner/x and tuner/xy include each other", output)

    def test_the_list_of_known_faults_only_shrinks(self):
        files = project(core="db")
        known = "# comment\ncore/b.cpp\tdb/a.hpp\n"
        self.assertEqual(check({**files, "scripts/includes_known.tsv": known})[0], 0)
        code, output = check({**project(), "scripts/includes_known.tsv": known})
        self.assertEqual(code, 1)
        self.assertIn("core/b.cpp and db/a.hpp: no longer so, remove the line", output)


if __name__ == "__main__":
    unittest.main()
