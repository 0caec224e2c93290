"""Calls that must raise what names the argument, whatever they get: never crash, never return."""

import itertools
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pascaline
from pascaline import ops


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
    *[(pascaline.sweep, (problems,), {"kernel": "transpose"}, ValueError) for problems in [{}, "", [{}]]],
    *[(pascaline.sweep, (problems,), {"kernel": "transpose", "device": "emulator", "trials": 1}, pascaline.Error)
      for problems in ["ROWS", "ROWS=", {"ROWS": -1, "COLUMNS": 4}, {"ROW": 4}, {"ROWS": 4, "COLUMNS": 4, "STORAGE": "bit"},
                       {"ROWS": 2**70, "COLUMNS": 1}]],
    (pascaline.sweep, (), {"kernel": "no_such_kernel"}, pascaline.Error),
    (pascaline.sweep, (), {"kernel": "../etc/passwd"}, pascaline.Error),
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
    (pascaline.explain, ("M",), {}, ValueError),
    (pascaline.explain, ({"M": 4},), {"kernel": "nothing"}, pascaline.Error),
    (pascaline.explain, (), {"device": "cuda:x"}, ValueError),
    (pascaline.kernels, ("nothing",), {}, pascaline.Error),
    (pascaline.kernels, (7,), {}, TypeError),
    (pascaline.kernels, (), {"spaces": "/no/such/folder"}, pascaline.Error),
    (pascaline.workload, ("/no/such/folder",), {}, pascaline.Error),
    (pascaline.workload, (7,), {}, TypeError),
    (pascaline.probe, (), {"seconds": 1}, ValueError),
    (pascaline.probe, (), {"seconds": "1"}, TypeError),
    (pascaline.probe, (), {"only": "memory"}, TypeError),
    (pascaline.probe, (), {"only": ["smell"], "device": "emulator"}, ValueError),
    (pascaline.probe, (), {"device": "cuda:99"}, pascaline.Error),
    *[(ops.attention_prefill, (zeros(8, 2, 16), zeros(8, 2, 16), zeros(8, 2, 16)),
       {"segment_starts": np.array(starts, np.int32), "causal": False, "device": device}, ValueError)
      for starts in [(0, 5, 10**8), (0, 5, 3, 8), (-4, 5, 8), (0, 5), (1, 8), (0, 2**31 - 1, 8)] for device in [None, "emulator"]],
    (ops.normed_matmul, (zeros(9, 32), zeros(32), zeros(16, 32)), {}, ValueError),
    (ops.use_database, ("/no/such/file.db",), {}, pascaline.Error),
    (ops.use_database, (7,), {}, TypeError),
    (ops.use_database, (__file__,), {}, pascaline.StoreError),
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


def test_how_many_there_are() -> None:
    assert len(cases()) + len(CALLS) >= 200
