"""The end of the interpreter while other threads work, forks and subinterpreters: each in a process of its own."""

import os
import subprocess
import sys
import textwrap

import pytest

PACKAGE = os.environ["PASCALINE_PYTHON_PACKAGE"]
BEFORE = f"""
import sys, threading, time
sys.path.insert(0, {PACKAGE!r})
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    loaded = os.environ["PASCALINE_PRELOADED"]
    return subprocess.run([sys.executable, "-c", BEFORE + textwrap.dedent(code)], capture_output=True, text=True, timeout=100,
                          env={**os.environ, "LD_PRELOAD": loaded} if loaded else None)


SWEEP = """
    import pascaline
    begun = threading.Event()

    def sweep():
        pascaline.sweep({"ROWS": 32, "COLUMNS": 48}, kernel="transpose", db=FILE, device="emulator", trials=100000,
                        jobs=2, preheat=0, progress=lambda event: event["kind"] == "trial" and begun.set())
"""


def test_a_sweep_of_a_daemon_thread_is_ended_with_the_interpreter(tmp_path: os.PathLike[str]) -> None:
    file = os.path.join(tmp_path, "tuned.db")
    ended = run(f"FILE = {file!r}\n" + textwrap.dedent(SWEEP) + """
threading.Thread(target=sweep, daemon=True).start()
assert begun.wait(60)
""")
    assert ended.returncode == 0, ended.stderr
    assert "Fatal Python error" not in ended.stderr  # how much the thread still says of its exception is Python's business
    import pascaline

    assert pascaline.status(file)["last"][0]["state"] == "interrupted" and pascaline.trials(file)


def test_operations_and_answers_of_daemon_threads_do_not_break_the_end() -> None:
    model = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "tiny_qwen3_vl")
    ended = run(f"""
    import numpy, pascaline
    from pascaline import ops
    x, begun = numpy.ones((64, 512), numpy.float32), threading.Semaphore(0)

    def work():
        ops.softmax(x)
        begun.release()
        try:
            while True:
                ops.softmax(x)
        except pascaline.Error:
            pass

    for _ in range(3):
        threading.Thread(target=work, daemon=True).start()
        begun.acquire()
    pieces = pascaline.Model({model!r}, device="cpu").stream("Tell", greedy=True, max_tokens=4000)
    next(pieces)
    """)
    assert ended.returncode == 0 and ended.stderr == "", ended.stderr


def test_functions_that_run_at_the_end_may_compute() -> None:
    ended = run("""
    import atexit, numpy

    @atexit.register  # before the package's own, and so called after it
    def last():
        from pascaline import ops
        print(ops.softmax(numpy.zeros((1, 4), numpy.float32))[0, 0])

    import pascaline
    """)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "0.25\n", "")


@pytest.mark.parametrize("first", [True, False])
def test_a_subinterpreter_is_refused_and_the_main_one_lives(first: bool) -> None:
    ended = run(f"""
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    if not {first}:
        import pascaline
    other = interpreters.create()
    try:
        found = interpreters.run_string(other, "import sys; sys.path = {{}}; import pascaline".format(sys.path))
    except Exception as error:
        found = error
    assert "main interpreter only" in str(found), found
    import numpy
    from pascaline import ops
    print(ops.softmax(numpy.zeros((1, 4), numpy.float32))[0, 0])
    """)
    assert (ended.returncode, ended.stdout) == (0, "0.25\n"), ended.stderr


def test_a_forked_process_is_refused_and_ends_as_usual() -> None:
    ended = run("""
    import os, numpy, pascaline
    from pascaline import ops
    x = numpy.zeros((1, 4), numpy.float32)
    ops.softmax(x)
    child = os.fork()
    if child == 0:
        try:
            ops.softmax(x)
        except pascaline.Error as error:
            assert "forked" in str(error)
            sys.exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    assert (ended.returncode, ended.stdout) == (0, "7\n"), ended.stderr
