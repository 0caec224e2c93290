"""Types: mypy accepts the package, its stub and the example; what the package says of itself is current."""

import ast
import os
import pathlib
import subprocess
import sys

import pascaline
from pascaline import _native

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = pathlib.Path(os.environ["PASCALINE_PYTHON_PACKAGE"])


def test_mypy(tmp_path: pathlib.Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import pascaline\npascaline.sweep(trials='many')\n")
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(PACKAGE.parent / "mypy_cache")]
    environment = {**os.environ, "MYPYPATH": str(PACKAGE)}
    good = subprocess.run([*command, "-p", "pascaline"], env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert good.returncode == 0, good.stdout + good.stderr
    files = [str(ROOT / "examples" / "python" / "tune_and_run.py"), str(wrong)]
    mixed = subprocess.run([*command, *files], env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert mixed.stdout.count("error:") == 1 and 'wrong.py:2: error: Argument "trials"' in mixed.stdout, mixed.stdout


def test_ops_is_written_by_the_build() -> None:
    ops = PACKAGE / "pascaline" / "ops.py"
    assert not ops.is_symlink() and not (ROOT / "python" / "pascaline" / "ops.py").exists()
    table = ast.parse((ROOT / "python" / "make_ops.py").read_text())
    names = {node.elts[0].value for node in ast.walk(table) if isinstance(node, ast.Tuple) and len(node.elts) >= 6 and isinstance(node.elts[0], ast.Constant)}
    written = {node.name for node in ast.walk(ast.parse(ops.read_text())) if isinstance(node, ast.FunctionDef)}
    assert len(names) > 10 and names <= written, names - written


def test_everything_has_a_docstring() -> None:
    for name in pascaline.__all__:
        if callable(getattr(pascaline, name)) and name not in ("Problem", "Progress"):
            assert getattr(pascaline, name).__doc__, name


def test_exceptions_are_what_type_checkers_are_told() -> None:
    tree = ast.parse((ROOT / "python" / "pascaline" / "_errors.py").read_text())
    told = {node.name: [ast.unparse(base) for base in node.bases] for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    for name, bases in told.items():
        assert [base.__name__ for base in getattr(pascaline, name).__bases__] == bases
    assert set(told) == {name for name in dir(_native) if name.endswith("Error")}


def test_sweep_takes_the_command_lines_options() -> None:
    assert {"trials", "min-samples", "polite"} <= set(_native.sweep_options())
