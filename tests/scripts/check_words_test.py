"""Runs scripts/check_words.py on small projects of its own, and on this one."""
import pathlib
import resource
import subprocess
import sys
import tempfile

try:
    import unittest
except ImportError:
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "check_words.py"


class CheckWordsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name, "project")
        self.git("init", "-q", "-b", "main", str(self.root), at=".")
        self.write("scripts/words.tsv", (ROOT / "scripts" / "words.tsv").read_text())

    def git(self, *arguments, at=None):
        identity = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
        return subprocess.run(["git", "-C", at or str(self.root), *identity, *arguments], check=True, capture_output=True, text=True).stdout

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def commit(self, subject):
        self.git("commit", "-q", "--allow-empty", "-m", subject)

    def check(self, *options, root=None):
        result = subprocess.run([sys.executable, SCRIPT, "--root", root or self.root, *options], capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr

    def expect_hits(self, name, text, *lines):
        """The lines and words that are found in a file of this text."""
        self.write(name, text)
        output = self.check("--show", name)[1]
        found = [line.split(", better")[0] for line in output.splitlines()]
        self.assertEqual(found, [f"{name}:{line}" for line in lines], text)
        (self.root / name).unlink()

    def test_this_project_has_no_hits_that_are_not_listed(self):
        if not (ROOT / ".git").exists():
            self.skipTest("not a clone")
        begin = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        code, output = self.check(root=ROOT)
        self.assertEqual(code, 0, output)
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begin, 10)

    def test_comments_and_literals_are_read(self):
        self.expect_hits("core/a.cpp", 'int a;  // it tells how\nint b = f("is no number");\n', "1: 'tells how'", "2: 'is no'")
        self.expect_hits("core/a.hpp", "/// It goes\n/// on with this.\n", "1: 'goes on with'")
        self.expect_hits("core/a.cpp", '/* one\n   nobody */\nauto s = R"(x\nanew)";\n', "2: 'nobody'", "4: 'anew'")
        self.expect_hits("core/a.cpp", 'f("the shape is "\n  "no shape");\n', "1: 'is no'")
        self.expect_hits("core/a.cpp", 'f("go on ", "with"); // stands\ng(); // at\nint x = 1\'000; f("told");\n', "3: 'told'")
        self.expect_hits("python/a.py", '"""Text.\n\nNobody does."""\n# as ever\n', "3: 'Nobody'", "4: 'as ever'")
        self.expect_hits("scripts/a.sh", "# brings it\nwarn 'nothing was brought' # whoever\n", "1: 'brings'", "2: 'brought'", "2: 'whoever'")
        self.expect_hits("CMakeLists.txt", "# in turns\n", "1: 'in turns'")
        self.expect_hits("docs/a.md", "Runs by\nitself; what it is told.\n", "1: 'by itself'", "2: 'told'")
        self.expect_hits("search_spaces/a.json", '{"because": "there are no rows"}\n', "1: 'are no'")
        self.expect_hits("db/schema.sql", "-- for people\ncreate table t (told int);\n", "1: 'for people'", "2: 'told'")

    def test_beginnings_of_comments_are_read(self):
        self.expect_hits("core/a.cpp", "// What it does.\nint a;  ///< of the row\n// It is so. As\n// Of this kind.\n", "1: 'What'")
        self.expect_hits("core/a.cpp", "int a;\n/// Whether it is.\n", "2: 'Whether'")
        self.expect_hits("scripts/a.sh", "#!/bin/sh\n\n# Those that are.\n", "3: 'Those'")

    def test_identifiers_are_read_as_words(self):
        for name in ("kMostRows", "kLeastUs", "kFewestTrials", "tell_status", "x_told", "toldOnce", "go_before", "ThriftFinals", "rows_behind"):
            self.expect_hits("core/a.cpp", f"int {name} = 1;\n", f"1: '{name}'")
            self.expect_hits("scripts/a.py", f"{name} = 1\n", f"1: '{name}'")
        for name in ("most_rows", "kMosTable", "retold", "teller", "almost", "foretell"):
            self.expect_hits("core/a.cpp", f"int {name} = 1;\n")

    def test_what_is_right_is_left_alone(self):
        self.expect_hits("core/a.cpp", '// It is no longer there, recommended, and tells apart.\nf("3 are no more");\n')

    def test_a_new_hit_is_named_with_what_to_write(self):
        code, output = self.check()
        self.assertEqual(code, 0, output)
        self.write("docs/a.md", "It is done\nanew.\n")
        code, output = self.check()
        self.assertEqual(code, 1)
        self.assertIn("docs/a.md:2: 'anew', better: again", output)
        self.assertEqual(self.check("--update")[0], 0)  # there was no list
        self.assertEqual(self.check()[0], 0)
        self.write("docs/a.md", "It is done anew and anew.\n")
        self.assertEqual(self.check()[0], 1)
        self.assertEqual(self.check("--update")[0], 1)
        self.assertEqual(self.check()[0], 1)

    def test_a_count_that_fell_is_to_be_lowered(self):
        self.write("docs/a.md", "Anew, anew.\n")
        self.check("--update")
        self.write("docs/a.md", "Anew, again.\n")
        code, output = self.check()
        self.assertEqual(code, 1)
        self.assertIn("1 counts are larger than the present ones: run scripts/check_words.py --update", output)
        self.assertEqual(self.check("--update")[0], 0)
        self.assertIn("docs/a.md\t1 \\banew\\b\n", (self.root / "scripts/words_known.tsv").read_text())
        self.assertIn("--update", self.check("--help")[1])

    def test_a_moved_file_takes_its_counts_along(self):
        self.write("docs/a.md", "Anew.\n")
        self.check("--update")
        (self.root / "docs/a.md").rename(self.root / "docs/b.md")
        self.assertIn("run scripts/check_words.py --update", self.check()[1])
        self.assertEqual(self.check("--update")[0], 0)
        self.assertIn("docs/b.md\t1 ", (self.root / "scripts/words_known.tsv").read_text())
        self.write("docs/c.md", "Anew.\n")
        self.assertEqual(self.check("--update")[0], 1)

    def test_commit_subjects_since_a_revision(self):
        self.commit("the first; of long ago")
        base = self.git("rev-parse", "HEAD").strip()
        for subject in ("Add a check of words", "Pass the address on", "Embed pages", "Feed builds", "Focus the page"):
            self.commit(subject)
        code, output = self.check("--since", base)
        self.assertEqual(code, 0, output)
        wrong = {"Add one; remove one": "a semicolon", "Add " + "x" * 70: "74 characters", "Added a check": "imperative", "Fixes it": "imperative",
                 "Checking words": "imperative", "add words": "imperative", "The words": "imperative", "Docs: add words": "imperative",
                 "Read it anew": "'anew' in its subject, better: again"}
        for subject, message in wrong.items():
            self.commit(subject)
            code, output = self.check("--since", "HEAD~1")
            self.assertEqual(code, 1, subject)
            self.assertIn(message, output)
            self.assertEqual(output.count("commit "), 1, output)

    def test_merges_have_a_subject_of_their_own(self):
        self.commit("Add one")
        self.git("checkout", "-q", "-b", "side")
        self.commit("Add two")
        self.git("checkout", "-q", "main")
        self.git("merge", "-q", "--no-ff", "side", "-m", "side; merged")
        self.assertEqual(self.check("--since", "HEAD~1")[0], 0)

    def test_a_shallow_detached_clone_checks_what_it_has(self):
        self.git("add", "-A")
        self.commit("the first; of long ago")
        base = self.git("rev-parse", "HEAD").strip()
        self.commit("Add a check")
        clone = str(self.root.parent / "clone")
        self.git("clone", "-q", "--depth", "1", f"file://{self.root}", clone, at=".")
        self.git("checkout", "-q", "--detach", at=clone)
        code, output = self.check("--since", base, root=clone)
        self.assertEqual(code, 0, output)
        self.assertIn(f"this clone does not have {base}", output)
        self.git("commit", "-q", "--allow-empty", "-m", "Added; more", at=clone)
        self.assertEqual(self.check("--since", base, root=clone)[0], 1)

    def test_the_list_does_not_grow_by_hand(self):
        self.write("docs/a.md", "Anew.\n")
        self.check("--update")
        self.git("add", "-A")
        self.commit("Add a page")
        self.write("docs/a.md", "Anew, anew.\n")
        self.write("scripts/words_known.tsv", "docs/a.md\t2 \\banew\\b\n")
        self.assertEqual(self.check()[0], 0)
        code, output = self.check("--since", "HEAD")
        self.assertEqual(code, 1)
        self.assertIn("2 of '\\banew\\b', but 1 at HEAD", output)


if __name__ == "__main__":
    unittest.main()
