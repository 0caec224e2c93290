"""Calls that must raise what names the argument, whatever they get: never crash, never return."""

import itertools
import pathlib
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pascaline
from pascaline import ops, packed

TINY = pathlib.Path(__file__).parents[2] / "examples" / "tiny_qwen3_vl"
OWN = pascaline.Kernel(pathlib.Path(__file__).parents[2] / "examples" / "own_kernel" / "saxpy.cu")


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


# Each operation with arguments that fit.
GOOD: dict[str, tuple[Callable[..., Any], dict[str, np.ndarray]]] = {
    "matmul": (ops.matmul, {"a": zeros(4, 32), "b": zeros(16, 32), "out": zeros(4, 16)}),
    "normed_matmul": (ops.normed_matmul,
                      {"a": zeros(4, 32), "norm": zeros(32), "b": zeros(16, 32), "out": zeros(4, 16)}),
    "rmsnorm": (ops.rmsnorm, {"x": zeros(4, 32), "weight": zeros(32), "out": zeros(4, 32)}),
    "layernorm": (ops.layernorm, {"x": zeros(4, 32), "weight": zeros(32), "bias": zeros(32), "out": zeros(4, 32)}),
    "softmax": (ops.softmax, {"x": zeros(4, 32), "out": zeros(4, 32)}),
    "add": (ops.add, {"a": zeros(4, 32), "b": zeros(4, 32), "out": zeros(4, 32)}),
    "transpose": (ops.transpose, {"x": zeros(4, 32), "out": zeros(32, 4)}),
    "gather": (ops.gather, {"table": zeros(8, 32), "indices": zeros(4, dtype=np.int32), "out": zeros(4, 32)}),
    "attention_prefill": (ops.attention_prefill, {"q": zeros(4, 2, 16), "k": zeros(4, 1, 16), "v": zeros(4, 1, 16),
                                                  "out": zeros(4, 2, 16)}),
}


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


def misaligned(array: np.ndarray) -> np.ndarray:
    memory = np.zeros(array.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 16 + array.itemsize
    return memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)


# What can be wrong with one argument, and what it raises.
SPOILS: dict[str, tuple[Callable[[np.ndarray], Any], Any]] = {
    "none": (lambda a: None, (TypeError, ValueError)),
    "a number": (lambda a: 3, TypeError),
    "a text": (lambda a: "array", TypeError),
    "a list": (lambda a: [[1.0]], TypeError),
    "complex": (lambda a: a.astype(np.complex64), TypeError),
    "objects": (lambda a: a.astype(object), TypeError),
    "of bool": (lambda a: a.astype(bool), (TypeError, ValueError)),
    "of the other byte order": (lambda a: a.astype(a.dtype.newbyteorder()), TypeError),
    "of records": (lambda a: a.astype([("value", a.dtype)]), TypeError),
    "masked": (lambda a: np.ma.masked_array(a, mask=True), ValueError),
    "float64": (lambda a: a.astype(np.float64), ValueError),
    "uint8": (lambda a: a.astype(np.uint8), ValueError),
    "too many dimensions": (lambda a: a.reshape(1, 1, 1, 1, *a.shape), ValueError),
    "a scalar": (lambda a: np.array(1, a.dtype), ValueError),
    "longer": (lambda a: zeros(a.shape[0], *(3 * n + 1 for n in a.shape[1:]), dtype=a.dtype) if a.ndim > 1
               else zeros(a.shape[0] + 7, 1, dtype=a.dtype), ValueError),
    "backwards": (lambda a: a[::-1], ValueError),
    "misaligned": (misaligned, ValueError),
}


def cases() -> list[Any]:
    found = []
    for (operation, (_, arguments)), spoil in itertools.product(GOOD.items(), SPOILS):
        found += [pytest.param(operation, argument, spoil, id=f"{operation}-{argument}-{spoil}")
                  for argument in arguments if not (argument == "out" and spoil == "none")]
    return found


@pytest.mark.parametrize("operation, argument, spoil", cases())
def test_an_operation_refuses(operation: str, argument: str, spoil: str) -> None:
    function, arguments = GOOD[operation]
    change, raised = SPOILS[spoil]
    if argument == "indices" and spoil == "misaligned":
        pytest.skip("indices need the alignment of their elements only")
    spoiled = {**arguments, argument: change(arguments[argument])}
    with pytest.raises(raised) as caught:
        function(**spoiled)
    # Of shapes that do not fit each other, either may be the one that is named.
    named = arguments if spoil == "longer" else [argument]
    assert any(name in str(caught.value) for name in named)


@pytest.mark.parametrize("operation", GOOD)
def test_results_are_not_written_where_they_must_not_be(operation: str) -> None:
    function, arguments = GOOD[operation]
    with pytest.raises(pascaline.ArgumentError, match="out: the array is read-only"):
        function(**{**arguments, "out": read_only(arguments["out"])})
    with pytest.raises(pascaline.ArgumentError, match="device: it is cuda:7"):
        function(**arguments, device="cuda:7")
    with pytest.raises(TypeError, match="device"):
        function(**arguments, device=7)


def test_what_overlaps_is_refused() -> None:
    x = zeros(4, 4)
    with pytest.raises(pascaline.ArgumentError, match="out overlaps x"):
        ops.transpose(x, out=x)


class Broken:
    """What says that it is an array, and is not."""

    def __init__(self, interface: Any) -> None:
        self.__cuda_array_interface__ = interface


BROKEN = [None, 7, {}, {"data": 3}, {"data": (0, False), "typestr": 3, "shape": (1,)},
          {"data": (0, False), "typestr": "<f4", "shape": 3},
          {"data": (16, False), "typestr": "<f4", "shape": (4, 4), "strides": (3, 1)},
          {"data": (16, False), "typestr": "<f4", "shape": (4, 4), "strides": (16,)},
          {"data": (16, False), "typestr": "<f4", "shape": (4, 4), "strides": (16, 4, 4)},
          {"data": (16,), "typestr": "<f4", "shape": (4, 4)}, {"data": (), "typestr": "<f4", "shape": (4, 4)},
          {"data": (16, False), "typestr": "<f4", "shape": (-4, 4)}, {"data": (16, False), "typestr": "<f4", "shape": (4, None)},
          {"data": (16, False), "typestr": "<f4", "shape": (2**40, 2**40)}, {"data": (16, False), "typestr": ">f4", "shape": (4, 4)},
          {"data": (16, False), "typestr": "<f4", "shape": (4, 4), "stream": "x"},
          {"data": (16, False), "typestr": "<f4", "shape": (4, 4), "mask": 1},
          {"data": (16, False), "typestr": "<c8", "shape": (4, 4)}, {"data": ("x", False), "typestr": "<f4", "shape": (4,)}]


@pytest.mark.parametrize("interface", BROKEN)
def test_broken_interfaces(interface: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="x"):
        ops.softmax(Broken(interface), out=zeros(4, 4))


WRONG_PROBLEMS: list[Any] = [
    "ROWS", "ROWS=", "ROWS=4,ROWS=5,COLUMNS=4", {"ROWS": -1, "COLUMNS": 4}, {"ROWS": 0, "COLUMNS": 4}, {"ROW": 4}, {"ROWS": 4},
    {"ROWS": 4, "COLUMNS": 4, "STORAGE": "bit"}, {"ROWS": 4, "COLUMNS": 4, "STORAGE": 7}, {"ROWS": 2**70, "COLUMNS": 1},
    {"ROWS": "x", "COLUMNS": 4}]

# Arguments of functions: (function, positional, named, what is raised).
CALLS: list[tuple[Any, tuple[Any, ...], dict[str, Any], Any]] = [
    *[(pascaline.sweep, ({"ROWS": 4, "COLUMNS": 4},), {"kernel": "transpose", name: value}, ValueError)
      for name, value in [("trials", 0), ("trials", -1), ("budget", "soon"), ("until", "25:00"), ("searcher", "luck"),
                          ("objective", "joy"), ("seed", -1), ("device", "gpu"), ("target", "sm_1x"), ("jobs", 0),
                          ("min_samples", 1), ("rounds", 0), ("precision", 2), ("drift", "nan"), ("preheat", -1),
                          ("finalists", 0), ("max_temperature", 500), ("tolerate", "noise"), ("time_left", "sleep"),
                          ("portfolio", ""), ("db", ""), ("kernels", ""), ("cache", "a\0b"), ("trials", True),
                          ("device", ""), ("searcher", True)]],
    *[(pascaline.sweep, ({"ROWS": 4, "COLUMNS": 4},), {"kernel": "transpose", name: value}, TypeError)
      for name, value in [("trials", {}), ("budget", 5j), ("progress", 7), ("no_such_option", 1), ("json", True),
                          ("quiet", True), ("problem", "ROWS=4"), ("db", 7), ("kernels", b"x"), ("workload", []), ("help", True),
                          ("kernel", 7), ("kernel", ["transpose", 7])]],
    *[(pascaline.sweep, (problems,), {"kernel": "transpose"}, TypeError)
      for problems in [7, [7], [[{"ROWS": 4}]], {"ROWS": 1.5}, {7: 7}, {"ROWS": None}, {"ROWS": True}]],
    *[(pascaline.sweep, (problems,), {"kernel": "transpose"}, ValueError) for problems in [{}, "", [{}], []]],
    *[(pascaline.sweep, (problems,), {"kernel": "transpose", "device": "emulator", "trials": 1}, pascaline.ArgumentError)
      for problems in [*WRONG_PROBLEMS, {"ROWS": 2**62, "COLUMNS": 2**40}]],
    *[(pascaline.explain, (problems,), {"kernel": "transpose", "device": "emulator"}, pascaline.ArgumentError)
      for problems in WRONG_PROBLEMS],
    *[(OWN.tune, (problems,), {"device": "emulator", "trials": 1}, pascaline.ArgumentError)
      for problems in ["N", {"N": -1}, {"M": 4}, {"N": "x"}, {"N": 4, "STORAGE": "float32"}]],
    *[(OWN.explain, (problems,), {"device": "emulator"}, pascaline.ArgumentError) for problems in ["N", {"N": -1}, {"M": 4}]],
    (OWN.explain, ({"N": 4},), {"device": "gpu"}, pascaline.ArgumentError),
    *[(function, (zeros(4), zeros(4), zeros(4)), {"N": 4} | wrong, pascaline.ArgumentError)
      for function in [OWN.launch, OWN.run] for wrong in [{"N": -1}, {"N": 5}, {"M": 4}, {"N": "x"}, {"device": "gpu"}]],
    (pascaline.sweep, (), {"kernel": "no_such_kernel"}, pascaline.ArgumentError),
    (pascaline.sweep, (), {"kernel": ["transpose", "no_such_kernel"]}, pascaline.ArgumentError),
    (pascaline.sweep, (), {"kernel": "../etc/passwd"}, pascaline.ArgumentError),
    *[(function, (), {name: "/no/such/folder"}, pascaline.ArgumentError)
      for function in [pascaline.sweep, pascaline.resume, pascaline.explain, pascaline.kernels] for name in ["kernels", "spaces"]],
    *[(function, (), {"target": "sm_999", "device": "emulator"}, pascaline.ArgumentError)
      for function in [pascaline.sweep, pascaline.explain, pascaline.probe]],
    (pascaline.sweep, (), {"workload": "/no/such/file.json"}, pascaline.Error),
    (pascaline.sweep, (), {"model": "/no/such/folder"}, pascaline.Error),
    *[(function, ("/no/such/file.db",), {}, pascaline.StoreError)
      for function in [pascaline.winners, pascaline.trials, pascaline.sessions, pascaline.status, pascaline.report,
                       pascaline.resume, pascaline.probes]],
    *[(function, (wrong,), {}, TypeError)
      for function, wrong in itertools.product(
          [pascaline.winners, pascaline.trials, pascaline.status, pascaline.report, pascaline.resume, pascaline.probes],
          [7, b"x", [], object()])],
    (pascaline.trials, (), {"limit": -1}, ValueError),
    (pascaline.trials, (), {"limit": 1.5}, TypeError),
    (pascaline.trials, (), {"session": True}, TypeError),
    (pascaline.trials, (), {"status": "good"}, ValueError),
    (pascaline.trials, (), {"problem": "M=4"}, ValueError),
    (pascaline.winners, (), {"objective": "joy"}, ValueError),
    (pascaline.show, (None, "losers"), {}, ValueError),
    (pascaline.show, (None, 3), {}, TypeError),
    (pascaline.report, (None, None, "pdf"), {}, ValueError),
    (pascaline.report, (None, None, "csv"), {"against": "x.db"}, ValueError),
    (pascaline.report, (None,), {"against_session": 3}, ValueError),
    (pascaline.report, (None,), {"session": 1.5}, TypeError),
    (pascaline.report, (None,), {"limits": "no"}, TypeError),
    (pascaline.report, (None,), {"compile": 1}, TypeError),
    (pascaline.report, (None,), {"workload": "calls.json"}, pascaline.ArgumentError),
    (pascaline.page, (), {"height": "tall"}, TypeError),
    (pascaline.page, (), {"height": 0}, pascaline.ArgumentError),
    (pascaline.explain, ("M",), {}, ValueError),
    (pascaline.explain, ({"M": 4},), {"kernel": "nothing"}, pascaline.ArgumentError),
    (pascaline.explain, (), {"device": "cuda:x"}, ValueError),
    (pascaline.kernels, ("nothing",), {}, pascaline.ArgumentError),
    (pascaline.kernels, (7,), {}, TypeError),
    (pascaline.workload, ("/no/such/folder",), {}, pascaline.Error),
    (pascaline.workload, ("/no/such/folder",), {"device": "cpu"}, pascaline.ArgumentError),
    (pascaline.workload, (7,), {}, TypeError),
    *[(pascaline.workload, (TINY,), {"device": "emulator", "prompt_tokens": tokens}, raised)
      for tokens, raised in [("12", TypeError), (12, TypeError), ([1.5], TypeError), ([0], pascaline.ArgumentError)]],
    *[(pascaline.workload, (TINY, file), {"device": "emulator"}, pascaline.ArgumentError) for file in ["/no/folder/w.json", "/"]],
    (pascaline.probe, (), {"seconds": 1}, ValueError),
    (pascaline.probe, (), {"seconds": "1"}, TypeError),
    (pascaline.probe, (), {"only": "memory"}, TypeError),
    (pascaline.probe, (), {"only": ["smell"], "device": "emulator"}, ValueError),
    (pascaline.probe, (), {"device": "cuda:99"}, pascaline.Error),
    *[(pascaline.probe, (), {"device": device}, pascaline.ArgumentError) for device in ["gpu", "cuda:x"]],
    *[(ops.attention_prefill, (zeros(8, 2, 16), zeros(8, 2, 16), zeros(8, 2, 16)),
       {"segment_starts": np.array(starts, np.int32), "causal": False, "device": device}, ValueError)
      for starts in [(0, 5, 10**8), (0, 5, 3, 8), (-4, 5, 8), (0, 5), (1, 8), (0, 2**31 - 1, 8)] for device in [None, "emulator"]],
    (ops.normed_matmul, (zeros(9, 32), zeros(32), zeros(16, 32)), {}, ValueError),
    (ops.use_database, ("/no/such/file.db",), {}, pascaline.StoreError),
    (ops.use_database, (7,), {}, TypeError),
    (ops.use_database, (__file__,), {}, pascaline.StoreError),
    *[(packed.pack, (weight, "q8_0"), {}, pascaline.ArgumentError)
      for weight in [zeros(32), "weight", [[1.0, 2.0], [3.0]], np.full((1, 32), np.inf)]],
    *[(packed.pack, (weight, "q8_0"), {}, TypeError) for weight in [zeros(1, 32, dtype=np.complex64), zeros(1, 32, dtype="M8[s]")]],
    *[(packed.PackedMatrix, (zeros(2176, dtype=np.uint8), "q8_0", shape), {}, pascaline.ArgumentError)
      for shape in [(16,), (16, 32, 1), (-1, 32), (2**70, 32), (100, 320)]],
    *[(packed.PackedMatrix, (zeros(2176, dtype=np.uint8), "q8_0", shape), {}, TypeError) for shape in [None, 16, ("16", 32), (16.0, 32)]],
    (pascaline.frame, ("rows",), {}, TypeError),
    (pascaline.frame, (7,), {}, TypeError),
    (pascaline.frame, ([7],), {}, TypeError),
    (ops.matmul, (zeros(4, 32), zeros(16, 32)), {"epilogue": "sum"}, ValueError),
    (ops.matmul, (zeros(4, 32), zeros(16, 32)), {"epilogue": "bias"}, ValueError),
    (ops.matmul, (zeros(4, 32), zeros(16, 32)), {"epilogue": []}, ValueError),
    (ops.rmsnorm, (zeros(4, 32), zeros(32)), {"epsilon": float("nan")}, ValueError),
    (ops.rmsnorm, (zeros(4, 32), zeros(32)), {"epsilon": -1}, ValueError),
    (ops.rmsnorm, (zeros(4, 32), zeros(32)), {"epsilon": "small"}, TypeError),
    (ops.position_embedding, (zeros(4, 8), zeros(2, 2, 8)), {"grid_h": 2, "grid_w": 2, "merge": 0}, ValueError),
    (ops.position_embedding, (zeros(4, 8), zeros(2, 2, 8)), {"grid_h": 1.5, "grid_w": 2}, TypeError),
]


@pytest.mark.parametrize("call", range(len(CALLS)))
def test_a_function_refuses(call: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    function, positional, named, raised = CALLS[call]
    if function is pascaline.sweep and "db" not in named:
        named = {**named, "db": tmp_path / "unused.db"}
    with pytest.raises(raised) as caught:
        function(*positional, **named)
    assert str(caught.value)
    assert "\n" not in str(caught.value)


class Exported:
    """What gives a capsule that it was made with, or raises."""

    shape, dtype = (4, 4), "float32"

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **named: Any) -> Any:
        if isinstance(self.capsule, BaseException):
            raise self.capsule
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def test_what_a_capsule_is_of_is_used_once() -> None:
    x = Exported(np.full((4, 4), 2, np.float32).__dlpack__())
    assert (ops.softmax(x, out=zeros(4, 4)) == 0.25).all()
    for _ in range(3):
        with pytest.raises(TypeError, match="^x: the __dlpack__ of Exported gives a capsule that was used before"):
            ops.softmax(x, out=zeros(4, 4))
        with pytest.raises(TypeError, match="^out: the __dlpack__ of Exported gives a capsule that was used before"):
            ops.softmax(zeros(4, 4), out=x)
    for given, raised, message in [(None, TypeError, "^x: .* no capsule but NoneType"), (3, TypeError, "^x: .* no capsule but int"),
                                   (BufferError("elsewhere"), TypeError, "^x: Exported does not give .*elsewhere"),
                                   (KeyboardInterrupt("now"), KeyboardInterrupt, "now")]:
        with pytest.raises(raised, match=message):
            ops.softmax(Exported(given), out=zeros(4, 4))


def test_a_packed_matrix_of_itself_is_refused() -> None:
    matrix = packed.pack(zeros(16, 32), "q8_0")
    matrix.data = matrix
    for call in (lambda: ops.matmul(zeros(4, 32), matrix), matrix.unpack):
        with pytest.raises(TypeError, match="PackedMatrix"):
            call()


def test_every_exception_has_a_code_and_can_be_sent_to_another_process() -> None:
    for call in (lambda: pascaline.kernels("nothing"), lambda: ops.softmax(zeros(4, 4), epsilon=1), lambda: ops.matmul(zeros(4, 4), 3),
                 lambda: ops.matmul(zeros(4, 32), zeros(16, 32), epilogue="sum"), lambda: pascaline.winners("/no/such/file.db")):
        try:
            call()
        except pascaline.Error as error:
            again = pickle.loads(pickle.dumps(error))
            assert isinstance(error.code, int) and (type(again), str(again), again.code) == (type(error), str(error), error.code)
        except TypeError:
            pass


def test_numbers_may_be_numpys() -> None:
    x, weight = np.random.rand(4, 8).astype(np.float32), np.ones(8, np.float32)
    np.testing.assert_array_equal(ops.rmsnorm(x, weight, epsilon=np.float64(1e-5)), ops.rmsnorm(x, weight, epsilon=1e-5))
    np.testing.assert_allclose(ops.rmsnorm(x, weight, epsilon=np.float32(1e-5)), ops.rmsnorm(x, weight, epsilon=1e-5), rtol=1e-6)
    table, sizes = np.random.rand(2, 2, 8).astype(np.float32), {"grid_h": np.int64(2), "grid_w": np.int32(2), "merge": np.int8(1)}
    np.testing.assert_array_equal(ops.position_embedding(x, table, **sizes), ops.position_embedding(x, table, grid_h=2, grid_w=2, merge=1))


def test_how_many_there_are() -> None:
    assert len(cases()) + len(CALLS) >= 200
