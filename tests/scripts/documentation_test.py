#!/usr/bin/env python3
"""Pages: their links lead somewhere, results and changelog stay short, every benchmark is of use, no registry host is named."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEFT_OUT = {".git", ".toolkit", ".venv", "build", "__pycache__", "models"}
# In pieces, so that this file does not name them itself.
HOSTS = re.compile("|".join(["py" + r"pi\.(org|python)", "python" + "hosted", r"(deb|security|ftp)[a-z0-9.]*\." + "debian",
                             r"(archive|security|ports)\." + "ubuntu", r"developer\.download\." + "nvidia",
                             r"conda\." + "anaconda", r"registry\." + "npmjs"]))


def files(folder=ROOT):
    for entry in sorted(folder.iterdir()):
        if entry.is_dir() and not entry.is_symlink() and entry.name not in LEFT_OUT:
            yield from files(entry)
        elif entry.is_file():
            yield entry


def text_of(file):
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def headings(page):
    """The anchors of a page, as GitHub makes them of its headings."""
    anchors, code = set(), False
    for line in text_of(page).splitlines():
        code ^= line.startswith("```")
        if not code and (match := re.fullmatch(r"#+ (.*)", line)):
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[1].strip().lower())
            anchors.add(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    return anchors


class DocumentationTest(unittest.TestCase):
    def test_links_lead_to_files_and_headings(self):
        for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/**/*.md")]:
            for link in re.findall(r"\]\(([^)\s]+)\)", text_of(page).replace("\n", " ")):
                if re.match(r"[a-z]+:", link):
                    continue
                path, _, anchor = link.partition("#")
                target = (page.parent / path).resolve() if path else page
                with self.subTest(page=page.name, link=link):
                    self.assertTrue(target.exists())
                    if anchor:
                        self.assertIn(anchor, headings(target))

    def test_results_and_changelog_are_short(self):
        self.assertLessEqual((ROOT / "docs/results.md").stat().st_size, 15_000)
        self.assertLessEqual(len(text_of(ROOT / "CHANGELOG.md").splitlines()), 60)

    def test_every_benchmark_is_named_by_a_page_a_test_or_a_script(self):
        places = [file for file in files() if file.suffix in (".md", ".py", ".sh", ".hpp", ".cpp") or
                  (file.name == "CMakeLists.txt" and ROOT / "tests" in file.parents)]
        texts = {file: text_of(file) for file in places if file.name != "CHANGELOG.md"}
        for file in sorted((ROOT / "bench").iterdir()):
            if file.suffix in (".py", ".sh", ".cpp", ".cu", ".json"):
                # Programs are named without what their source ends in.
                name = file.stem if file.suffix in (".py", ".cpp", ".cu") else file.name
                word = re.compile(rf"(?<![\w]){re.escape(name)}(?![\w])")
                with self.subTest(file=file.name):
                    self.assertTrue(any(word.search(text) for place, text in texts.items() if place != file))

    def test_no_registry_host_is_named(self):
        for file in files():
            match = HOSTS.search(text_of(file))
            with self.subTest(file=str(file.relative_to(ROOT))):
                self.assertIsNone(match, match and match[0])


if __name__ == "__main__":
    unittest.main()
