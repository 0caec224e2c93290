"""pascaline.import_t1: what it writes, what it refuses, and that a condition means what Python finds.

PASCALINE_EXPRESSIONS names the program that evaluates expressions of search spaces (evaluate_expressions.cpp),
PASCALINE_PROGRAM pascaline; without them the tests that need them are skipped.
"""
import ast
import contextlib
import copy
import gzip
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import unittest
from fractions import Fraction

from pascaline import import_t1
from pascaline._conditions import translate_condition, translate_number
from pascaline._python_text import PythonTextError, python_values

INPUTS = pathlib.Path(__file__).resolve().parent / "t1"
EXPECTED = INPUTS / "expected"


def run_program(*arguments):
    return subprocess.run([sys.executable, "-m", "pascaline.import_t1", *map(str, arguments)], capture_output=True, text=True,
                          timeout=60, env={**os.environ, "PYTHONPATH": os.environ["PASCALINE_PYTHON_PACKAGE"]})


def run(*arguments):
    """Does the same in this process: to start one takes half a second."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            import_t1.main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code or 0
            if isinstance(code, str):
                print(code, file=err)
                code = 1
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def needs(variable):
    return unittest.skipUnless(os.environ.get(variable), f"{variable} is not set")


class Folder(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        self.into = self.folder / "my"

    def copy_inputs(self):
        for file in INPUTS.iterdir():
            if file.is_file():
                (self.folder / file.name).write_bytes(file.read_bytes())


class Written(Folder):
    def test_the_program_does_the_same_as_its_function(self):
        for arguments in ((INPUTS / "scale.json", "--into", self.into), (INPUTS / "scale.json", "--into", self.into), ()):
            of_function = run(*arguments[:2], *((self.folder / "function",) if arguments else ()))
            of_program = run_program(*arguments)
            self.assertEqual((of_function.returncode, of_function.stderr.replace("function", "my")),
                             (of_program.returncode, of_program.stderr))

    def test_every_input_becomes_what_is_expected(self):
        names = sorted(file.stem for file in INPUTS.glob("*.json"))
        self.assertEqual(names, ["conditions", "fills", "scale", "stencil", "weighted"])
        for name in names:
            result = run(INPUTS / f"{name}.json", "--into", self.into)
            self.assertEqual(result.returncode, 0, result.stderr)
            space = json.loads((self.into / f"{name}.json").read_text())
            expected = json.loads((EXPECTED / f"{name}.json").read_text())
            self.assertEqual(space, expected)
            self.assertEqual(list(space), list(expected))
            self.assertEqual((self.into / f"{name}.cu").read_text(), (EXPECTED / f"{name}.cu").read_text())

    def test_a_packed_input_is_the_same(self):
        self.copy_inputs()
        (self.folder / "scale.json.gz").write_bytes(gzip.compress((INPUTS / "scale.json").read_bytes()))
        self.assertEqual(run(self.folder / "scale.json.gz", "--into", self.into).returncode, 0)
        self.assertEqual(json.loads((self.into / "scale.json").read_text()),
                         json.loads((EXPECTED / "scale.json").read_text()))

    def test_defaults_that_are_given_are_the_default(self):
        self.copy_inputs()
        document = json.loads((INPUTS / "scale.json").read_text())
        first, second, *_ = document["ConfigurationSpace"]["TuningParameters"]
        first["Default"], second["Default"] = 64, None
        document["KernelSpecification"]["Arguments"][1].update(MemType="Global", RandomSeed=3)
        (self.folder / "in.json").write_text(json.dumps(document))
        self.assertEqual(run(self.folder / "in.json", "--into", self.into).returncode, 0)
        written = json.loads((self.into / "scale.json").read_text())["parameters"]
        self.assertEqual(written[0]["default"], 64)

    def test_contents_that_come_from_elsewhere_are_noted(self):
        self.copy_inputs()
        document = json.loads((INPUTS / "scale.json").read_text())
        filled = document["KernelSpecification"]["Arguments"][1]
        filled.update(FillType="BinaryRaw", FillValue="no number", DataSource="x.bin")
        (self.folder / "in.json").write_text(json.dumps(document))
        result = run(self.folder / "in.json", "--into", self.into)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"'{filled['Name']}' is filled by BinaryRaw (x.bin): give its contents", result.stderr)
        self.assertIn(f"--input {filled['Name']}=FILE", result.stderr)

    @needs("PASCALINE_PROGRAM")
    def test_the_program_reads_what_was_written_and_runs_the_kernel(self):
        for name, config in (("scale", {"ITEMS": 2, "block_size_x": 32, "wrong": False}),
                             ("weighted", {"block_size_x": 32, "use_constant": 0})):
            self.assertEqual(run(INPUTS / f"{name}.json", "--into", self.into).returncode, 0)
            checked = subprocess.run([os.environ["PASCALINE_PROGRAM"], "check", "--kernels", self.into, "--spaces", self.into,
                                      "--kernel", name, "--json"], capture_output=True, text=True,
                                     env={**os.environ, "XDG_CACHE_HOME": str(self.folder)})
            self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
            self.assertEqual(json.loads(checked.stdout)[0]["config"], config)

    def test_what_exists_is_replaced_only_with_force(self):
        self.assertEqual(run(INPUTS / "scale.json", "--into", self.into).returncode, 0)
        (self.into / "scale.cu").write_text("mine")
        result = run(INPUTS / "scale.json", "--into", self.into)
        self.assertEqual(result.returncode, 1)
        self.assertIn("scale.json exists; give --force", result.stderr)
        self.assertEqual((self.into / "scale.cu").read_text(), "mine")
        self.assertEqual(run(INPUTS / "scale.json", "--into", self.into, "--force").returncode, 0)
        self.assertIn("__global__ void scale", (self.into / "scale.cu").read_text())
        self.assertEqual(run(INPUTS / "scale.json", "--into", self.into, "--name", "other").returncode, 0)
        other = json.loads((self.into / "other.json").read_text())
        self.assertEqual((other["kernel"], other["launch"]["function"]), ("other", "scale"))
        self.assertEqual(sorted(file.name for file in self.into.iterdir()),
                         ["other.cu", "other.json", "scale.cu", "scale.json"])

    def test_a_folder_that_cannot_be_made_is_one_line_and_leaves_none(self):
        (self.folder / "file").write_text("mine")
        for into in (self.folder / "file", self.folder / "file" / "my", self.folder / "new" / "deep" / ("x" * 300)):
            result = run(INPUTS / "scale.json", "--into", into)
            self.assertEqual(result.returncode, 1)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertFalse((self.folder / "new").exists())
        self.assertEqual(run(INPUTS / "scale.json", "--into", self.into, "--name", "x" * 300).returncode, 1)
        self.assertFalse(self.into.exists())
        (self.into / "scale.json").mkdir(parents=True)
        self.assertEqual(run(INPUTS / "scale.json", "--into", self.into, "--force").returncode, 1)
        self.assertEqual([file.name for file in self.into.iterdir()], ["scale.json"], "neither is written")
        self.assertEqual(run(INPUTS / "scale.json", "--into", self.folder / "new" / "deep").returncode, 0)


class Refused(Folder):
    """Each change of an input is refused with its place, and nothing is left."""

    def refusal(self, pointer, value, source="scale"):
        self.copy_inputs()
        document = json.loads((INPUTS / f"{source}.json").read_text())
        *parents, key = pointer.split("/")[1:]
        at = document
        for parent in parents:
            at = at[int(parent) if isinstance(at, list) else parent]
        at[int(key) if isinstance(at, list) else key] = copy.deepcopy(value)
        (self.folder / "in.json").write_text(json.dumps(document))
        result = run(self.folder / "in.json", "--into", self.into)
        self.assertEqual(result.returncode, 1, f"was taken over: {pointer} {value}")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertFalse(self.into.exists())
        return result.stderr

    def expect(self, pointer, value, *parts, source="scale"):
        text = self.refusal(pointer, value, source)
        for part in parts:
            self.assertIn(part, text)

    def test_other_versions(self):
        general = "/General"
        for version in (99, "2.0.0", []):
            self.expect(general, {"FormatVersion": version}, "in.json:/General/FormatVersion: version", "known are 0.x and 1.x")
        for version in (1, 1.0, "1.0.0", "0.0.1", "1", None):
            document = json.loads((INPUTS / "scale.json").read_text())
            document["General"] = {"FormatVersion": version}
            document["schema_version"] = version
            self.copy_inputs()
            (self.folder / "in.json").write_text(json.dumps(document))
            self.assertEqual(run(self.folder / "in.json", "--into", self.into, "--force").returncode, 0, version)

    def test_parameters(self):
        parameter = "/ConfigurationSpace/TuningParameters/0"
        at = "in.json:" + parameter
        self.expect(parameter + "/Values", "[1, __import__('os')]",
                    at + "/Values: in '[1, __import__('os')]', column 5: the function '__import__' is not known")
        self.expect(parameter + "/Values", "[]", at + "/Values: a parameter needs a value")
        self.expect(parameter + "/Values", "[0.5]", at + "/Values: the value '0.5' is no int")
        self.expect(parameter + "/Values", [1], at + "/Values: expected text")
        self.expect(parameter + "/Values", "range(4097)", at + "/Values: has 4097 values; a search space holds 4096")
        self.expect(parameter + "/Type", "complex", at + "/Type: 'complex' is none of int, uint, float, bool, string")
        self.expect(parameter + "/Name", "ITEMS", "/TuningParameters/1/Name: the parameter 'ITEMS' appears twice")
        self.expect(parameter + "/Name", "min", "'min' is a word of the expression language")
        self.expect(parameter + "/Name", "a b", "'a b' is not an identifier")
        self.expect("/ConfigurationSpace/TuningParameters/1/Values", "[-1]", "the value '-1' is no uint",
                    source="stencil")
        self.expect("/ConfigurationSpace/TuningParameters", [], "there is no parameter")

    def test_conditions(self):
        condition = "/ConfigurationSpace/Conditions/0"
        self.expect(condition + "/Expression", "ITEMS > nothing",
                    f"in.json:{condition}/Expression: in 'ITEMS > nothing', column 9: unknown name 'nothing'")
        self.expect(condition + "/Expression", "layout == 'row'",
                    "column 1: 'layout' is text, which cannot be used in conditions", source="stencil")
        self.expect(condition + "/Parameters", ["ITEM"], condition + "/Parameters/0: there is no parameter 'ITEM'")
        self.expect(condition + "/Expression", "ITEMS > 5", "/ConfigurationSpace/Conditions: no configuration")

    def test_kernels(self):
        kernel = "/KernelSpecification"
        self.expect(kernel + "/Language", "OpenCL", "in.json:/KernelSpecification/Language", "only CUDA")
        self.expect(kernel + "/Language", "Fortran", "'Fortran' is none of OpenCL, CUDA, Vulkan, Hypertuner")
        self.expect(kernel + "/KernelFile", "none.cu", "/KernelSpecification/KernelFile", "none.cu")
        (self.folder.parent / "outside.cu").write_text("__global__ void scale() {}\n")
        self.addCleanup((self.folder.parent / "outside.cu").unlink)
        for outside in ("../outside.cu", "a/../../outside.cu", str(self.folder / "scale.cu")):
            self.expect(kernel + "/KernelFile", outside, "/KernelSpecification/KernelFile", "leads out of the folder")
        self.expect(kernel + "/KernelName", "other", "/KernelSpecification/KernelName", "no __global__")
        self.expect(kernel + "/CompilerOptions", ["-O3", "-Ifolder"], "/KernelSpecification/CompilerOptions/1: no such folder: ")
        self.expect(kernel + "/LocalSize", {}, "/KernelSpecification/LocalSize: the key 'X' is missing")
        self.expect(kernel + "/LocalSize/X", "block_size_x / 3", "/LocalSize/X", "column 1", "fraction")
        self.expect(kernel + "/ProblemSize", [0], "/ProblemSize: expected one to three numbers of at least 1")
        self.expect(kernel + "/SharedMemory", -1, "/KernelSpecification/SharedMemory")
        for key in ("ConfigurationSpace", "KernelSpecification"):
            self.expect("/" + key, None, key)

    def test_arguments(self):
        arguments = "/KernelSpecification/Arguments"
        self.expect(arguments + "/1/MemoryType", "Local", "/Arguments/1/MemoryType", "SharedMemory")
        self.expect(arguments + "/0/MemoryType", "Symbol", "/Arguments/0", "can only be read")
        self.expect(arguments + "/1/MemoryType", "Texture", "'Texture' is none of Scalar, Vector, Local, Symbol")
        self.expect(arguments + "/1/Type", "quad", "'quad' cannot be taken over")
        self.expect(arguments + "/2/FillValue", 0.5, "/Arguments/2", "not a whole number")
        self.expect(arguments + "/2/FillValue", 3e9, "/Arguments/2/FillValue", "does not fit the type 'int32'")
        self.expect(arguments + "/1/FillValue", 1e39, "/Arguments/1/FillValue", "does not fit")
        self.expect(arguments + "/1/FillType", "Elsewhere", "/Arguments/1/FillType", "'Elsewhere' is none of Constant, Random")
        for size in (-1, 0, 10**18, "block_size_x - 64", "ProblemSize[0] ** 6"):
            self.expect(arguments + "/1/Size", size, "in.json:" + arguments + "/1/Size")
        for name, reason in (("a b", "no identifier"), ("1x", "no identifier"), ("ITEMS", "a parameter's name"),
                             ("y", "appears twice")):
            self.expect(arguments + "/1/Name", name, "in.json:" + arguments + "/1/Name", reason)
        self.expect(arguments, [], "no result to check")

    def test_what_is_not_known_is_refused_by_name(self):
        kernel, at = "/KernelSpecification", "in.json:"
        for pointer in (kernel + "/KernelTypeNames", kernel + "/ReferenceArguments", kernel + "/Arguments/1/TypeSize",
                        kernel + "/Arguments/1/DataSource", kernel + "/Arguments/0/Offset", kernel + "/LocalSize/W",
                        "/Defines", "/ConfigurationSpace/Groups", "/ConfigurationSpace/TuningParameters/0/Stride",
                        "/ConfigurationSpace/Conditions/0/Weight"):
            for value in (1, "x", ["x"], {"x": 1}, False):
                self.expect(pointer, value, at + pointer + ": this member cannot be taken over")
        self.expect(kernel + "/Arguments/1/MemType", "Texture", "/Arguments/1/MemType: 'Texture' is none of Global")
        self.expect(kernel + "/Arguments/1/Output", 1, "/Arguments/1/Output", "ReadOnly")

    def test_defaults(self):
        parameter = "/ConfigurationSpace/TuningParameters/0/Default"
        self.expect(parameter, 7, "in.json:" + parameter + ": 7 is not among the values")
        self.expect(parameter, "x", "in.json:" + parameter)
        self.expect("/ConfigurationSpace/TuningParameters/1/Default", 1, "no configuration with", "meets the conditions")

    def test_a_template_with_files_of_its_own(self):
        self.copy_inputs()
        source = (INPUTS / "scale.cu").read_text().replace("__global__", "template <typename E, int N> __global__")
        source = source.replace("void scale", "void __launch_bounds__(N) scale")
        (self.folder / "scale.cu").write_text('// #include "no.h"\n#include "own.h"\nnamespace app {\n' + source + "}\n")
        (self.folder / "own.h").write_text("#include <deep.h>\n")
        (self.folder / "headers").mkdir()
        (self.folder / "headers" / "deep.h").write_text("constexpr int kDeep = kOther;\n")
        (self.folder / "other.cu").write_text("constexpr int kOther = 1;\n")
        document = json.loads((INPUTS / "scale.json").read_text())
        kernel = document["KernelSpecification"]
        kernel.update({"KernelName": "app::scale<float, 1024>", "Sources": ["other.cu", "scale.cu"], "CompilerOptions": ["-Iheaders"]})
        file, into = self.folder / "in.json", self.folder / "made"
        file.write_text(json.dumps(document))
        result = run(file, "--into", into)
        self.assertEqual(result.returncode, 0, result.stderr)
        space = json.loads((into / "scale.json").read_text())
        self.assertEqual((space["kernel"], space["launch"]["function"]), ("scale", "app::scale<float, 1024>"))
        self.assertEqual(sorted(one.name.partition("-")[0] for one in into.iterdir()), ["deep", "other", "own", "scale.cu", "scale.json"])
        if "PASCALINE_PROGRAM" in os.environ:
            checked = subprocess.run([os.environ["PASCALINE_PROGRAM"], "check", "--kernels", into, "--spaces", into,
                                      "--kernel", "scale", "--limit", "1"], capture_output=True, text=True)
            self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        (self.folder / "own.h").write_text('#include "../outside.h"\n')
        (self.folder.parent / "outside.h").write_text("")
        self.addCleanup((self.folder.parent / "outside.h").unlink)
        result = run(file, "--into", into, "--force")
        self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1), result.stderr)
        self.assertRegex(result.stderr, r"includes .*outside.h, which is not in the folder of")
        self.expect("/KernelSpecification/CompilerOptions", ["-I", ".."], "/CompilerOptions/1: '..' leads out of the folder")
        self.expect("/KernelSpecification/Sources", ["none.cu"], "/KernelSpecification/Sources/0: there")
        self.expect("/KernelSpecification/KernelName", "scale<", "/KernelSpecification/KernelName: 'scale<' is not the name of a function")

    def test_what_is_no_json(self):
        for text in ("{", "[]", "", '{"a": 1, "a": 2}', '{"ConfigurationSpace": NaN}', "[" * 100_000):
            (self.folder / "in.json").write_text(text)
            result = run(self.folder / "in.json", "--into", self.into)
            self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1), text[:20] + result.stderr)
        odd = self.folder / "none\x1b[31m.json"
        self.assertNotIn("\x1b", run(odd, "--into", self.into).stderr)


class Values(unittest.TestCase):
    def test_lists_are_worked_out_as_python_does(self):
        for text in ("[1, 2, 4]", "[1]", "( 16 , 32 , ) ", "1, 2", "[-1, +2, 0x10, 1.5, 1e2]", "[True, False]",
                     "['a', \"b'c\", 'd\\n\\'']", "range(4)", "range(1, 8, 3)", "range(5, 0, -2)", "list(range(1, 4))",
                     "list(range(0,3)) + [16, 32]", "[2**i for i in range(3, 8)]",
                     "[x for x in range(1,9) if x % 2 == 0]", "[x*y for x in [1,2] for y in (3, 5) if x*y != 5 if y]",
                     "[i if i > 1 else -i for i in range(3)]", "list(16 * i for i in range(1, 3))",
                     "[7 // 2, -7 // 2, 7 // -2, -7 % 3, 7 % -3, 7 / 2, 2 ** -1, -2 ** 2]", "[-7.5 // 2, -7.5 % 2]",
                     "[0] * 2 + 2 * [1]", "sorted([3, 1, 2])",
                     "[len([1, 2]), min(3, 1), max([4, 9]), sum([1, 2]), abs(-3), int(2.9), float(1)]",
                     "[1 if 2 in [1, 2] and not 3 in (1,) else 0, 1 < 2 < 3, 'a' == 'b', 0 or 5]",
                     "[6 & 3, 6 | 1, 6 ^ 2]", "[x[1] for x in [[1, 2], [3, 4]]]",
                     "[(-1) ** 5, (-1) ** 1000000000, 0 ** 0, 1 ** 9999999999]"):
            expected = list(eval(text))  # these are ours
            values = python_values("  " + text)
            self.assertEqual((values, [type(v) for v in values]), (expected, [type(v) for v in expected]), text)

    def test_line_ends_count_as_spaces(self):
        self.assertEqual(python_values("[1,\n 2,\r\n\t3]"), [1, 2, 3])

    def test_what_is_no_list_of_values_is_refused_with_its_column(self):
        for text, column, message in (
                ("5", 1, "expected a list of values"), ("[[1]]", 1, "a list cannot be a parameter's value"),
                ("[1, x]", 5, "unknown name 'x'"), ("[1, 2", 1, "never closed"), ("  [1 / 0]", 4, "division by zero"),
                ("[1 % 0]", 2, "division by zero"), ("[2 ** 63]", 2, "does not fit 64 bits"),
                ("[9223372036854775807 + 1]", 2, "does not fit 64 bits"), ("[10.0 ** 400]", 2, ""),
                ("['a' + 'b']", 2, "found a text"), ("['a' * 1000000000]", 2, "found a text"), ("['a' < 1]", 2, ""),
                ("range(0, 10, 0)", 1, ""), ("range(1.5)", 1, ""), ("range(100000)", 1, "more than 65535 values"),
                ("open('/etc/passwd')", 1, "the function 'open' is not known"), ("[x for x in 5]", 13, "expected a list"),
                ("[x for x, y in [1]]", 8, "expected the name of a variable"), ("[1][3]", 1, ""),
                ("os.system('x')", 1, "the function 'os.system' is not known"), ("[().__class__]", 2, "a member"),
                ("[lambda: 1]", 2, "lambda cannot be used"), ("[f'{1}']", 2, "a formatted text"), ("[b'a']", 2, ""),
                ("[None]", 2, ""), ("[1j]", 2, ""), ("[1 << 2]", 2, "a shift"), ("[~1]", 2, "'~'"),
                ("[(x := 1)]", 3, "':='"), ("{1}", 1, "a set"), ("[*range(3)]", 2, "'*'"), ("[0] * 'a'", 1, ""),
                ("min([])", 1, ""), ("[int('5')]", 2, "found a text"), ("[1 in 'a']", 2, ""), ("", 1, "expected a value")):
            with self.assertRaises(PythonTextError, msg=text) as refused:
                python_values(text)
            self.assertEqual(refused.exception.column, column, text)
            self.assertIn(message, str(refused.exception), text)

    def test_work_is_bounded(self):
        begin = time.monotonic()
        for text in ("[0] * 9223372036854775807", "[[[0] * 60000] * 60000] * 60000", "range(10**18)",
                     "[i for i in range(60000) for j in range(60000) if i < 0]",
                     "[x for x in range(65535) if x in range(65535)]", "[" * 100_000, "-" * 100_000 + "1",
                     "[" + "-" * 3000 + "1]", "sorted(range(60000)) * 100", "[2 ** 9223372036854775807]",
                     "[2 ** 2 ** 2 ** 2 ** 2 ** 2]", " " * 2_000_000, "[" + "1+" * 50_000 + "1]", "(" * 190 + "1" + ")" * 190,
                     "[" + "x" * 300_000 + "]", "[" + "x." * 100_000 + "x]", "[" + "9" * 5000 + "]"):
            with self.assertRaises(PythonTextError, msg=text[:60]):
                python_values(text)
        self.assertLess(time.monotonic() - begin, 60)

    def test_damaged_text_is_refused_or_listed(self):
        draw = random.Random(30)
        words = ["for x in ", "range(", "if ", " else ", "not ", " in ", "**", "//", "%", "[", "]", "(", ")", "'", "list",
                 "x", ",", "0", "1e9", "sorted(", " and ", " or ", "-", "[0] * ", "\\", "\0", "\n", "é", "lambda ", ":="]
        seeds = ["[2**i for i in range(3, 8)]", "list(range(1, 9)) + ['a', True, 0.5]",
                 "[x for x in range(1,9) if x % 2 == 0 and not x in (3, 4)]"]
        listed = 0
        for _ in range(3000):
            text = draw.choice(seeds)
            for _ in range(draw.randint(1, 4)):
                at = draw.randrange(len(text) + 1)
                text = text[:at] + (draw.choice(words) if draw.random() < 0.6 else "") + text[at + draw.randint(0, 2):]
            try:
                self.assertLessEqual(len(python_values(text)), 65535)
                listed += 1
            except PythonTextError as error:
                self.assertGreaterEqual(error.column, 1, text)
        self.assertGreater(listed, 20)


class Conditions(unittest.TestCase):
    NAMES = {"x": [1, 2], "real": [0.5], "text": ["row"]}

    def refusal(self, text):
        try:
            return "was translated to " + translate_condition(text, self.NAMES, {"size": [64, 32]})
        except PythonTextError as error:
            return f"{error.column}: {error}"

    def test_what_the_language_lacks_is_refused_with_its_column(self):
        for text, message in (
                ("x == 'row'", "6: text cannot be used in conditions"),
                ("text == x", "1: 'text' is text, which cannot be used in conditions"),
                ("x > real", "5: 'real' is a real, which cannot be used in conditions"),
                ("x > 0.5", "5: a real that is not whole cannot be used in conditions; write it as a fraction"),
                ("x + y", "5: unknown name 'y'"),
                ("sqrt(x) > 1", "1: the function 'sqrt' cannot be used in conditions; abs, min and max can"),
                ("x ** x > 1", "1: a power needs an exponent that is a constant from -62 to 62"),
                ("x in size", "6: 'in' needs a list or a tuple that is written out"),
                ("size > 3", "1: 'size' is a list; give an index, as in size[0]"),
                ("size[2] > 3", "1: 'size' has no element with this index"),
                ("[1] == x", "1: List cannot be used in conditions"),
                ("[x for x in [1]] == x", "1: ListComp cannot be used in conditions"),
                ("x << 2", "1: a shift cannot be used"), ("x is 2", "6: 'is' cannot be used; compare with =="),
                ("~x", "1: '~' cannot be used"), ("x.y", "1: a member cannot be used in conditions"),
                ("(x)(1)", "1: the function 'x' cannot be used"), ("__import__('os')", "1: the function '__import__'"),
                ("", "1: expected a value"),
                ("x > 99999999999999999999", "5: the number does not fit 64 bits"), ("lambda: x", "1: lambda"),
                ("x > 1e400", "5: a real that is not whole")):
            self.assertTrue(self.refusal(text).startswith(message), f"{text}: {self.refusal(text)}")
        for text in ("x >", "x == 1 1", "(x", "x x", "x > 1abc", "x > 'a", "x é 1"):  # Python's own words
            self.assertRegex(self.refusal(text), r"^[1-9]\d*: .")
        self.assertRegex(self.refusal("+".join("x" * 2000)), "becomes longer than|nested too deeply")
        chain = "x % -3"
        for _ in range(30):
            chain = f"({chain}) % -3"
        self.assertIn("becomes longer than 4096 characters", self.refusal(chain))

    def test_nested_chains_take_no_time(self):
        """Each operand of a chain is translated once: nested, these would take 2^30 steps otherwise."""
        def nested(end):
            text = "x"
            for _ in range(30):
                text = f"(0 < {text}{end})"
            return text
        begin = time.monotonic()
        self.assertIn("was translated", self.refusal(nested(" not in []")))
        self.assertIn("becomes longer than 4096 characters", self.refusal(nested(" < 2")))
        self.assertIn("was translated", self.refusal(nested("**0 < 2")))
        self.assertLess(time.monotonic() - begin, 20)

    def test_of_positive_numbers_it_stays_readable(self):
        names = {"x": [16, 32], "y": [1, 2], "on": [True, False]}
        for text, expression in (("x * y <= 1024", "((x * y) <= 1024)"), ("x / y == 16", "(x == (16 * y))"),
                                 ("not on or 2 ** y > 3", "(!on || ((1 << y) > 3))"), ("max(x) == x", "(32 == x)")):
            self.assertEqual(translate_condition(text, names), expression)
        self.assertEqual(translate_number("size[0] // x", names, {"size": [4096, 64]}), "(4096 / x)")
        self.assertEqual(translate_number("64 / 4", {}), "16")
        self.assertEqual(translate_number("-3", {}), "(-3)")


def evaluate(symbols, points, expressions):
    """What the program finds: for each expression a character a point, 0, 1, z (division by zero) or o (overflow)."""
    text = json.dumps({"symbols": symbols, "points": points, "expressions": expressions})
    result = subprocess.run([os.environ["PASCALINE_EXPRESSIONS"]], input=text, capture_output=True, text=True)
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return result.stdout.splitlines()


def exact_code(text):
    """The condition as code that divides fractions, for Python's own evaluation."""
    class Exact(ast.NodeTransformer):
        def visit_BinOp(self, node):
            self.generic_visit(node)
            if isinstance(node.op, ast.Div):
                node.left = ast.Call(ast.Name("Fraction", ast.Load()), [node.left], [])
            return node

    return compile(ast.fix_missing_locations(Exact().visit(ast.parse(text, mode="eval"))), "<condition>", "eval")


def python_truth(code, names):
    """What Python finds: 0, 1, or z where it divides by zero."""
    try:
        return str(int(bool(eval(code, {"Fraction": Fraction}, names))))  # these are ours
    except ZeroDivisionError:
        return "z"


class RandomCondition:
    WORDS = [("+", 2), ("-", 2), ("*", 2), ("/", 2), ("//", 2), ("%", 2), ("<", 2), ("<=", 2), (">", 2), (">=", 2),
             ("==", 2), ("!=", 2), ("and", 2), ("or", 2), ("not", 1), ("neg", 1), ("abs", 1), ("min", 2), ("max", 2),
             ("if", 3), ("chain", 3), ("in", 3), ("//", 2), ("%", 2)]

    def __init__(self, seed):
        self.draw = random.Random(seed)

    def make(self, depth):
        if depth == 0 or self.draw.random() < 0.125:
            return str(self.draw.randrange(9)) if self.draw.random() < 0.33 else self.draw.choice("abc")
        word, count = self.draw.choice(self.WORDS)
        parts = [self.make(0 if word == "in" and index else depth - 1) for index in range(count)]
        if word in ("abs", "min", "max"):
            return f"{word}({', '.join(parts)})"
        form = {"not": "(not {})", "neg": "(-{})", "if": "({} if {} else {})", "chain": "({} < {} <= {})",
                "in": "({} in [{}, {}])"}.get(word, "({} " + word + " {})")
        return form.format(*parts)


@needs("PASCALINE_EXPRESSIONS")
class Meaning(unittest.TestCase):
    def test_the_conditions_of_the_input_mean_what_python_finds(self):
        document = json.loads((INPUTS / "conditions.json").read_text())["ConfigurationSpace"]
        lists = {p["Name"]: eval(p["Values"]) for p in document["TuningParameters"]}
        lists["PICK"] = list(lists["PICK"])
        texts = [condition["Expression"] for condition in document["Conditions"]]
        self.assertGreater(len(texts), 40)
        for pick, text in enumerate(texts):
            text = text.replace(f"PICK != {pick} or ", "").replace("max(x)", "32")
            points = [[a, b, x, y, int(on)] for a in lists["a"] for b in lists["b"] for x in lists["x"]
                      for y in lists["y"] for on in lists["on"]]
            names = list("abxy") + ["on"]
            found, = evaluate(names, points, [translate_condition(text, lists)])
            code = exact_code(text)
            expected = "".join(python_truth(code, dict(zip(names, point))) for point in points)
            self.assertEqual(found, expected, text)

    def test_random_conditions_mean_what_python_finds(self):
        lists = {"a": [1, 2, 8], "b": [-3, 0, 5], "c": [-4, -1]}
        points = [[a, b, c] for a in lists["a"] for b in lists["b"] for c in lists["c"]]
        maker = RandomCondition(3)
        conditions, expressions = [], []
        too_long = 0
        for index in range(3000):
            text = maker.make(1 + index % 4)
            try:
                expressions.append(translate_condition(text, lists))
                conditions.append(text)
            except PythonTextError as error:
                self.assertIn("longer than", str(error), text)
                too_long += 1
        checked = without_value = overflows = 0
        for text, expression, found in zip(conditions, expressions, evaluate(list("abc"), points, expressions)):
            if found.startswith("error"):  # nested deeper than the language takes
                too_long += 1
                continue
            code = exact_code(text)
            for point, value in zip(points, found):
                if value == "o":
                    overflows += 1
                    continue
                expected = python_truth(code, dict(zip("abc", point)))
                self.assertEqual(value, expected, f"{text} became {expression} at {point}")
                checked += 1
                without_value += expected == "z"
        self.assertGreater(checked, 30_000)
        self.assertGreater(without_value, 1000)
        self.assertLess(too_long, 600)
        self.assertLess(overflows, 3000)
