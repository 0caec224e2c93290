"""More of what scripts for Kernel Tuner say, on the emulated device; kernel_test.py has their kernels and arguments."""

import contextlib
import json
import math
import pathlib
import re
import sqlite3
import warnings
from typing import Any

import numpy as np
import pytest

import pascaline
from pascaline import kernel_tuner
from pascaline.kernel_tuner import file_utils, util
from pascaline.kernel_tuner._results import Trials
from pascaline.kernel_tuner._signature import Signature
from pascaline.kernel_tuner._space import Request, Space
from pascaline.kernel_tuner.accuracy import AccuracyObserver, Tunable, TunablePrecision, error_metric_from_name
from pascaline.kernel_tuner.integration import TuneResults
from pascaline.kernel_tuner.kernelbuilder import PythonKernel
from pascaline.kernel_tuner.observers import BenchmarkObserver
from pascaline.kernel_tuner.observers.ncu import NCUObserver
from pascaline.kernel_tuner.observers.nvml import NVMLObserver, get_nvml_gr_clocks
from pascaline.kernel_tuner.observers.register import RegisterObserver

SHORT: dict[str, Any] = {"preheat": 0, "jobs": 2, "finalists": 1, "rounds": 2, "device": "emulator", "iterations": 3}
SIZE = 600
ADD = """__global__ void add(float *c, const float *a, int n) {
  int i = blockIdx.x * block_size_x + threadIdx.x; if (i < n) c[i] = a[i] + 1; }"""


def arguments() -> list[Any]:
    return [np.zeros(SIZE, np.float32), np.random.default_rng(1).standard_normal(SIZE).astype(np.float32), np.int32(SIZE)]


def tune(source: Any = ADD, size: Any = SIZE, given: Any = None, params: Any = None, name: str = "add",
         **options: Any) -> list[dict[str, Any]]:
    given = arguments() if given is None else given
    results, _ = kernel_tuner.tune_kernel(name, source, size, given, params or {"block_size_x": [32, 64]}, **{**SHORT, **options})
    return results


def right(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    assert all("__error__" not in result for result in results), results
    return results


def expected(given: list[Any]) -> list[Any]:
    return [given[1] + 1, None, None]


def test_code_of_a_function_of_the_parameters() -> None:
    def made(p: dict[str, Any]) -> str:
        code = f"__global__ void add(float *c, const float *a, int n) {{ int i = blockIdx.x * {p['block_size_x']} + threadIdx.x;"
        return code + (" if (i < n) c[i] = a[i] + 1; }" if p["kind"] == "plain" else " if (i >= n) return; c[i] = 1 + a[i]; }")

    given = arguments()
    results = right(tune(made, given=given, params={"block_size_x": [32, 64], "kind": ["plain", "early"]}, answer=expected(given)))
    assert {(one["block_size_x"], one["kind"]) for one in results} == {(x, kind) for x in (32, 64) for kind in ("plain", "early")}


def test_a_template_in_a_namespace_with_files_of_its_own(tmp_path: pathlib.Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "one.cuh").write_text("constexpr int kOne = 1;\n")
    (tmp_path / "more.cuh").write_text("#include <one.cuh>\n")
    code = """#include "more.cuh"
namespace app { template <typename E, int Threads> __global__ void __launch_bounds__(Threads) add(E *c, const E *a, int n) {
  int i = blockIdx.x * Threads + threadIdx.x; if (i < n) c[i] = a[i] + kOne; } }"""
    (tmp_path / "add.cu").write_text(code)
    options: dict[str, Any] = {"params": {"block_size_x": [32, 64], "real": ["float"]}, "compiler_options": ["-I", str(tmp_path / "include")]}
    for name, source in (("app::add<real, block_size_x>", [str(tmp_path / "add.cu"), str(tmp_path / "more.cuh")]),
                         ("add<float, block_size_x>", [lambda p: code, str(tmp_path / "more.cuh")])):
        given = arguments()
        assert len(right(tune(source, given=given, name=name, answer=expected(given), **options))) == 2
    after = kernel_tuner.run_kernel("add<float, block_size_x>", str(tmp_path / "add.cu"), SIZE, given, {"block_size_x": 32}, device="emulator",
                                    compiler_options=options["compiler_options"])
    assert np.allclose(after[0], given[1] + 1)
    for name, message in (("add<(1)>", "template arguments that are not allowed"), ("add kernel", "is not the name of a function, or of a template")):
        with pytest.raises(pascaline.Error, match=message):
            tune(code, name=name, **options)
    with pytest.raises(pascaline.ArgumentError, match="block_size_x is a parameter that is not among `defines`"):
        tune(code, name="add<float, block_size_x>", defines={"real": "float"}, **options)


def test_code_of_configurations_that_are_left_out_is_not_counted() -> None:
    params = {"block_size_x": [32, 64], "m": list(range(40)), "k": list(range(40))}
    results = right(tune(lambda p: ADD + "// " + "{m} {k}".format(**p), params=params, restrictions=["m == k", "m < 2", "block_size_x == 64"]))
    assert sorted((one["m"], one["k"]) for one in results) == [(0, 0), (1, 1)]


def test_code_that_cannot_be_chosen_is_refused() -> None:
    with pytest.raises(pascaline.ArgumentError, match="kernel_source: code cannot be chosen by a parameter called 'x'"):
        tune(lambda p: ADD + f"// {p['x']}", params={"block_size_x": [32], "x": [1, 2]})
    with pytest.raises(pascaline.ArgumentError, match="kernel_source: the function makes 300 different codes; at most 256"):
        tune(lambda p: ADD + f"// {p['block_size_x']}", params={"block_size_x": list(range(1, 301))})


def test_grid_of_functions_and_texts() -> None:
    def blocks(p: dict[str, Any]) -> Any:
        """Not one expression: the values are a table."""
        n = SIZE
        for _ in range(p["halves"]):
            n //= 2
        return n, 1

    counts = "__global__ void add(int *c, int n) { if (threadIdx.x == 0) c[blockIdx.x] = gridDim.x * 1000 + grid_size_x; }"
    for size, divisor, wanted in [(blocks, ["block_size_x"], math.ceil(150 / 32)), ("halves * 50", None, math.ceil(100 / 32)),
                                  (lambda p: (p["halves"] * 70,), lambda p: p["block_size_x"] / 2, math.ceil(140 / 16)), (640, "block_size_x / 3", 64),
                                  (np.int32(64), [lambda p: 0.5], 128), ((["halves * 2", 1]), [], 4)]:
        (out, _) = kernel_tuner.run_kernel("add", counts, size, [np.zeros(200, np.int32), np.int32(0)], {"block_size_x": 32, "halves": 2},
                                           grid_div_x=divisor, device="emulator")
        assert out[0] == wanted * 1001 and np.count_nonzero(out) == wanted, (size, divisor)


def test_a_table_has_a_value_for_each_configuration() -> None:
    counts = "__global__ void add(int *c, int n) { if (threadIdx.x == 0) atomicAdd(c, 1); }"

    def size(p: dict[str, Any]) -> int:
        return {("a", 1): 1, ("a", 2): 3, ("b", 1): 5, ("b", 2): 9}[p["kind"], p["k"]]

    sizes: list[int] = []
    tune(counts, size, [np.zeros(1, np.int32), np.int32(0)], {"kind": ["a", "b"], "k": [1, 2], "block_size_x": [32]}, grid_div_x=[],
         verify=lambda _, found: bool(sizes.append(int(found[0][0])) or True))
    assert sorted(sizes) == [1, 3, 5, 9]


def several_lines(p: Any) -> bool:
    p = dict(p)
    return bool(p["block_size_x"] > 32 and p["kind"] != "b")


RESTRICTIONS: list[Any] = [
    several_lines, lambda **p: p["block_size_x"] == 64 and p["kind"] == "a", ["block_size_x > 32", "kind == 'a'"], eval("lambda p: str(p).count('64') and p['kind'] == 'a'"),
    [lambda block_size_x, kind: (block_size_x, kind) in [(64, "a")]], lambda p: sum(v for v in p.values() if v != "b" and v != "a") == 64.5 and "a" in p.values()]


class AtMost:
    """As a constraint of python-constraint: it is called with names, values and a configuration."""

    def preProcess(self) -> None:  # noqa: N802
        """Is what constraints are known by."""

    def __call__(self, names: list[str], domains: dict[str, list[Any]], config: dict[str, Any]) -> bool:
        return set(names) == set(domains) and config["block_size_x"] <= 32


def test_restrictions_of_some_parameters() -> None:
    params = {"block_size_x": [32, 64], "k": [1, 2]}
    results = right(tune(params=params, restrictions=[AtMost(), (lambda k: k == 2, ["k"])]))
    assert [(one["block_size_x"], one["k"]) for one in results] == [(32, 2)]
    with pytest.raises(pascaline.ArgumentError, match="restrictions: <lambda> asks for 'm', which is not in tune_params"):
        tune(params=params, restrictions=[(lambda m: True, ["m"])])


@pytest.mark.parametrize("which", range(len(RESTRICTIONS)))
def test_restrictions_of_any_function(which: int) -> None:
    results = tune(params={"block_size_x": [32, 64], "kind": ["a", "b"], "scale": [0.5]}, restrictions=RESTRICTIONS[which])
    assert [(one["block_size_x"], one["kind"], one["scale"]) for one in right(results)] == [(64, "a", 0.5)]


def test_texts_and_mixed_values_are_macros_as_given() -> None:
    source = """__global__ void add(float *c, const float *a, int n) {
      constexpr char text[] = name; static_assert(sizeof(text) == 4); static_assert(sizeof(mixed) == (two == 1 ? 4 : 8));
      int i = blockIdx.x * block_size_x + threadIdx.x; if (i < n) c[i] = a[i] + 1; }"""
    results = tune(source, params={"block_size_x": [64], "name": ['"a/b"', '"(;)"'], "mixed": [1, 2.5], "two": [1, 2]},
                   restrictions=[lambda p: (p["two"] == 1) == (p["mixed"] == 1)])
    assert sorted((one["name"], one["mixed"]) for one in right(results)) == [('"(;)"', 1), ('"(;)"', 2.5), ('"a/b"', 1), ('"a/b"', 2.5)]
    assert {type(one["mixed"]) for one in results} == {int, float}


def test_defines_take_the_place_of_the_parameters() -> None:
    source = """__global__ void add(float *c, const float *a, int n) {
    #ifdef step
      no_parameter();
    #endif
      int step = 1, i = blockIdx.x * WIDTH + threadIdx.x; if (i < n) c[i] = a[i] + step + EXTRA; }"""
    given = arguments()
    right(tune(source, given=given, params={"block_size_x": [32, 64], "step": [5, 7]}, answer=[given[1] + 1, None, None],
               defines={"WIDTH": "block_size_x", "EXTRA": lambda p: f"({p['step']} - {p['step']})"}))
    with pytest.raises(pascaline.Error, match="compile_failed"):
        tune(source, params={"block_size_x": [32], "step": [5]}, defines={})


def test_options_of_compilers(tmp_path: pathlib.Path) -> None:
    (tmp_path / "more.h").write_text("#define ONE 1\n")
    source = "#include <more.h>\n" + ADD.replace("+ 1", "+ ONE + EXTRA")
    given = arguments()
    results = right(tune(source, given=given, answer=expected(given), compiler_options=[
        "-I", str(tmp_path), "-DEXTRA=0", "-arch=sm_52", "-O3", "--std=c++17", "--use_fast_math", "-maxrregcount=64", "-lineinfo", "-Xptxas", "-v"]))
    assert set(results[0]).isdisjoint({"compiler_option_0"}) and len(results) == 2


def test_what_is_known_of_a_result() -> None:
    results, environment = kernel_tuner.tune_kernel("add", ADD, SIZE, arguments(), {"block_size_x": [32, 64]}, **SHORT)
    for one in results:
        assert one["status"] in ("ok", "dropped") and len(one["times"]) >= 3 and all(time > 0 for time in one["times"])
        assert one["compile_time"] >= 0 and one["benchmark_time"] > 0 and one["verification_time"] >= 0 and re.match(r"\d{4}-\d\d-\d\d ", one["timestamp"])
    assert environment["best_config"] == results[0] and environment["total_compile_time"] == sum(one["compile_time"] for one in results)
    assert json.loads(json.dumps((results, environment)))[0][0]["block_size_x"] == results[0]["block_size_x"]


def test_results_are_sorted_by_the_objective() -> None:
    metrics = {"width": lambda p: p["block_size_x"], "GFLOP/s": "1000 / width"}
    results = tune(metrics=metrics, objective="GFLOP/s")
    assert [one["width"] for one in results] == [32, 64]
    results = tune(metrics=metrics, objective="width", objective_higher_is_better=True)
    assert [one["width"] for one in results] == [64, 32]
    results, environment = kernel_tuner.tune_kernel("add", ADD, SIZE, arguments(), {"block_size_x": [32, 64]}, **SHORT, metrics=metrics,
                                                    objectives={"width": False, "GFLOP/s": True})
    assert [one["width"] for one in environment["best_config"]] == [32]
    with pytest.warns(UserWarning, match="the search looks for the shortest time; results are sorted by width"):
        tune(metrics=metrics, objective="width", objective_higher_is_better=True, strategy="random_sample", strategy_options={"max_fevals": 1})
    with pytest.raises(pascaline.ArgumentError, match="metrics: x: a result has no 'nvml_energy'; it has block_size_x, time"):
        tune(metrics={"x": lambda p: 1 / p["nvml_energy"]})


class Counts(BenchmarkObserver):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def register_configuration(self, params: Any) -> None:
        self.seen = [str(params["block_size_x"])]

    def before_start(self) -> None:
        self.seen.append("before")

    def after_start(self) -> None:
        self.seen.append("after")

    def after_finish(self) -> None:
        self.seen.append("end")

    def get_results(self) -> dict[str, Any]:
        return {"seen": " ".join(self.seen), "on": self.dev.name}


def test_observers_are_called_around_a_launch() -> None:
    for one in right(tune(observers=[Counts])):
        assert one["seen"] == f"{one['block_size_x']} before after end" and one["on"]


def test_what_sweeps_do_not_measure() -> None:
    with pytest.warns(UserWarning, match="the device does not measure nvml_energy, temperature"):
        results = tune(observers=[NVMLObserver(["nvml_energy", "temperature"])], metrics={"GFLOPS/W": lambda p: 1 / p["nvml_energy"]})
    assert all(math.isnan(one["temperature"]) and math.isnan(one["GFLOPS/W"]) for one in results)
    with pytest.raises(pascaline.ArgumentError, match="NCUObserver: a sweep does not measure by way of NVIDIA's profiler"):
        NCUObserver(metrics=["dram__bytes.sum"])
    with pytest.raises(pascaline.ArgumentError, match="clocks and power limits are not set by Pascaline"):
        get_nvml_gr_clocks(0)
    with pytest.raises(pascaline.ArgumentError, match="NVMLObserver: 'gr_voltage' is not measured"):
        NVMLObserver(["gr_voltage"])


def test_arguments_of_several_precisions() -> None:
    source = "#include <cuda_fp16.h>\nusing half = __half;\n" + ADD.replace("float", "real").replace("+ 1", "+ real(1)")
    zeros, a, n = arguments()
    results = tune(source, given=[TunablePrecision("real", zeros), TunablePrecision("real", a.astype(np.float64)), n],
                   params={"block_size_x": [64], "real": ["float", "double", "half"]}, answer=[a.astype(np.float64) + 1, None, None],
                   observers=[AccuracyObserver("max"), AccuracyObserver(key="rmse")])
    errors = {one["real"]: one["error"] for one in right(results)}
    assert errors["double"] < errors["float"] < 1e-5 < errors["half"] < 1e-2 and all(one["rmse"] <= one["error"] for one in results)
    assert error_metric_from_name("Mean Absolute Error")(np.float32([1, 2]), np.float32([2, 4])) == 1.5
    chosen = tune(given=[zeros, Tunable(lambda p: p["block_size_x"] // 64, [a, a + 1]), n], answer=[a + 1, None, None])
    assert {one["block_size_x"]: "__error__" in one for one in chosen} == {32: False, 64: True}


class OnDevice:
    """An array that lies on a device, as one of CuPy: it must be asked for a copy."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self.shape, self.dtype, self.size = array.shape, array.dtype, array.size
        self.__cuda_array_interface__ = {"shape": array.shape}

    def get(self) -> np.ndarray:
        return self._array.copy()

    def __array__(self, *_: Any) -> np.ndarray:
        raise TypeError("implicit conversion is not allowed")


def test_arrays_of_other_libraries() -> None:
    zeros, a, n = arguments()
    right(tune(given=[OnDevice(zeros), OnDevice(a), n], answer=[OnDevice(a + 1), None, None], lang="cupy"))
    (out, *_) = kernel_tuner.run_kernel("add", ADD, SIZE, [OnDevice(zeros), OnDevice(a), n], {"block_size_x": 64}, device="emulator")
    np.testing.assert_array_equal(out, a + 1)


@pytest.mark.parametrize("dtype, declared", [
    ("complex64", "float2"), ("complex128", "double2"), ("int16", "short"), ("uint16", "unsigned short"), ("uint64", "unsigned long long"), ("int8", "signed char"),
    ("bool", "bool"), ("int64", "long long"), ("float64", "double")])
def test_arrays_of_all_types(dtype: str, declared: str) -> None:
    source = f"__global__ void add({declared} *c, const {declared} *a, int n) {{ int i = blockIdx.x * block_size_x + threadIdx.x; if (i < n) c[i] = a[i]; }}"
    a = (np.arange(SIZE) % 7 + (1j if "complex" in dtype else 0)).astype(dtype)
    (one,) = right(tune(source, given=[np.zeros_like(a), a, np.int32(SIZE)], params={"block_size_x": [64]}, answer=[a, None, None]))
    assert one["block_size_x"] == 64


@pytest.mark.parametrize("value, declared", [
    (np.int16(-3), "short s"), (np.uint16(40000), "unsigned short s"), (np.uint64(2**40), "unsigned long long s"), (np.int8(-3), "signed char s"),
    (np.bool_(True), "bool s"), (np.int64(-3), "short s"), (np.float16(0.5), "half s"), (np.float64(0.1), "double s"), (np.float32(0.5), "real s")])
def test_scalars_of_all_types(value: Any, declared: str) -> None:
    source = f"#include <cuda_fp16.h>\ntypedef float real; __global__ void add(double *c, {declared}) {{ c[threadIdx.x] = (float)s; }}"
    (out, _) = kernel_tuner.run_kernel("add", source, 32, [np.zeros(32), value], {"block_size_x": 32}, device="emulator")
    assert (out == np.float32(float(value))).all()


PARTICLE = np.dtype([("alive", np.bool_), ("place", np.float32, (3,)), ("id", np.int16), ("mass", np.float64)], align=True)
MOVE = """struct Particle { bool alive; float place[3]; short id; double mass; };
__global__ void move(Particle *p, const Particle *from, Particle by, float2 turn, int n) {
  int i = blockIdx.x * block_size_x + threadIdx.x; if (i >= n) return;
  Particle one = from[i]; one.place[2] += by.place[1] * turn.y; one.id -= by.id; one.mass *= by.mass; one.alive = !one.alive; p[i] = one; }"""


def particles() -> tuple[list[Any], np.ndarray]:
    """Arguments of MOVE, and what it computes."""
    a = np.zeros(SIZE, PARTICLE)
    a["alive"], a["place"], a["id"], a["mass"] = np.arange(SIZE) % 3 == 0, np.arange(3 * SIZE).reshape(SIZE, 3) % 11, np.arange(SIZE) % 5 - 9, 1.5
    by = np.zeros(1, PARTICLE)
    by["place"], by["id"], by["mass"] = [1, 2, 3], 7, 4
    right = a.copy()
    right["place"][:, 2] += 1
    right["id"] -= 7
    right["mass"] *= 4
    right["alive"] = ~right["alive"]
    return [np.zeros(SIZE, PARTICLE), a, by[0], np.complex64(3 + 0.5j), np.int32(SIZE)], right


def test_structures_are_passed_by_pointer_and_by_value() -> None:
    given, moved = particles()
    (out, *_) = kernel_tuner.run_kernel("move", MOVE, SIZE, given, {"block_size_x": 64}, device="emulator")
    np.testing.assert_array_equal(out, moved)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results, _ = kernel_tuner.tune_kernel("move", MOVE + "// tuned", SIZE, given, {"block_size_x": [32, 64]}, answer=[moved, *[None] * 4],
                                              **SHORT)
    assert len(right(results)) == 2
    moved["mass"][5] += 1
    with pytest.raises(pascaline.Error, match=r"arguments\[0\], by up to 1"):
        kernel_tuner.tune_kernel("move", MOVE + "// wrong", SIZE, given, {"block_size_x": [32]}, answer=[moved, *[None] * 4], **SHORT)


def test_structures_that_lie_otherwise_are_refused() -> None:
    given, _ = particles()
    for dtype, message in [(np.dtype([("a", np.int8), ("b", np.float32)]), "make the type with align=True"),
                           (np.dtype([("a", np.complex64)]), r"arguments\[1\].a: complex64 cannot be passed"),
                           (np.dtype([("a", np.float32, (2, 2))]), r"arguments\[1\].a: .* cannot be passed"),
                           (np.dtype([("a", "U3")]), r"arguments\[1\].a: .* cannot be passed")]:
        given[1] = np.zeros(SIZE, dtype)
        with pytest.raises(pascaline.ArgumentError, match=message):
            kernel_tuner.run_kernel("move", MOVE, SIZE, given, {"block_size_x": 64}, device="emulator")
    given[1] = np.zeros(SIZE, np.dtype([("alive", np.bool_), ("id", np.int16), ("place", np.float32, (3,)), ("mass", np.float64)], align=True))
    with pytest.raises(pascaline.Error, match=r"move takes const Particle\* as its argument 2, the search space gives 'argument_1', a buffer of structure_2"):
        kernel_tuner.run_kernel("move", MOVE, SIZE, given, {"block_size_x": 64}, device="emulator")


def test_arrays_in_fortrans_order_lie_as_they_do() -> None:
    a = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    (out, _, _) = kernel_tuner.run_kernel("add", ADD, 6, [np.zeros_like(a), a, np.int32(6)], {"block_size_x": 32}, device="emulator")
    np.testing.assert_array_equal(out, a + 1)
    assert out.flags.f_contiguous


def test_rows_of_a_sparse_matrix_keep_their_order() -> None:
    source = """__global__ void add(float *c, const int *rows, const float *a, int n) {
      int i = blockIdx.x * block_size_x + threadIdx.x; if (i < n) { float s = 0; for (int k = rows[i]; k < rows[i + 1]; ++k) s += a[k]; c[i] = s; } }"""
    rows = np.concatenate([[0], np.cumsum(np.random.default_rng(3).integers(1, 9, 100))]).astype(np.int32)
    given = [np.zeros(100, np.float32), rows, np.ones(int(rows[-1]), np.float32), np.int32(100)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        right(tune(source, 100, given))


def test_nothing_is_compared_where_no_two_agree() -> None:
    source = "__global__ void add(float *c, int n) { c[threadIdx.x % n] = clock64() % 10000; }"
    with pytest.warns(UserWarning, match="no two configurations of add compute the same"):
        right(tune(source, 1, [np.zeros(32, np.float32), np.int32(32)]))


def test_a_cache_is_continued_and_replayed(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "cache"
    first = right(tune(cache=file, params={"block_size_x": [32], "kind": ["a", "b"]}))
    document = json.loads((tmp_path / "cache.json").read_text())
    assert document["kernel_name"] == "add" and document["tune_params_keys"] == ["block_size_x", "kind"] and set(document["cache"]) == {"32,a", "32,b"}
    assert document["cache"]["32,a"]["time"] > 0 and (tmp_path / "cache.json").read_text().endswith("}\n}")
    document["cache"]["32,a"]["time"] = 1e-6  # which no launch takes
    (tmp_path / "cache.json").write_text(json.dumps(document, indent="")[:-3] + ",")  # as an interrupted run leaves it
    results = right(tune(cache=file, params={"block_size_x": [32, 64], "kind": ["a", "b"]}))
    assert len(results) == 4 and results[0]["time"] == 1e-6 and results[0]["kind"] == "a" and results[0]["compile_time"] == 0
    again = right(tune(cache=file, params={"block_size_x": [32, 64], "kind": ["a", "b"]}))  # nothing is left to be measured
    assert [one["time"] for one in again] == [one["time"] for one in results]
    replayed, environment = kernel_tuner.tune_kernel("add", "", SIZE, [], {"block_size_x": [32, 64], "kind": ["a", "b"]}, cache=file, simulation_mode=True,
                                                     restrictions=["kind == 'a'"], metrics={"twice": "2 * time"})
    assert [one["block_size_x"] for one in replayed] == [32, 64] and replayed[0]["twice"] == 2e-6 and environment["simulation"]
    assert len(kernel_tuner.tune_cache(file, strategy="random_sample", strategy_options={"max_fevals": 3}, seed=2)[0]) == 3
    assert len(first) == 2
    for change, message in [({"params": {"block_size_x": [32]}}, "results of the parameters"),
                            ({"params": {"block_size_x": [32], "kind": ["a"]}, "size": 50}, "results of the problem 600, not 50"), ({"simulation_mode": True, "cache": tmp_path / "none"}, "does not exist")]:
        with pytest.raises(pascaline.ArgumentError, match=message):
            tune(**{"cache": file, **change})
    document["device_name"] = "another"
    (tmp_path / "cache.json").write_text(json.dumps(document))
    with pytest.raises(pascaline.ArgumentError, match="results of the device another, not"):
        tune(cache=file, params={"block_size_x": [32], "kind": ["a", "b"]})


def test_an_interrupted_sweep_leaves_its_cache(tmp_path: pathlib.Path) -> None:
    def interrupt(event: dict[str, Any]) -> None:
        if event["kind"] == "trial":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(params={"block_size_x": [32, 64, 96, 128]}, cache=tmp_path / "c", progress=interrupt)
    assert 1 <= len(json.loads((tmp_path / "c.json").read_text())["cache"]) < 4


def test_a_cache_is_written_where_metrics_fail(tmp_path: pathlib.Path) -> None:
    with pytest.raises(pascaline.ArgumentError, match="metrics: x"):
        tune(cache=tmp_path / "c", metrics={"x": "nothing + 1"})
    assert len(json.loads((tmp_path / "c.json").read_text())["cache"]) == 2


def test_failures_in_a_cache_stay_failures(tmp_path: pathlib.Path) -> None:
    source = "#if kind == 2\n#error no\n#endif\n" + ADD
    params = {"block_size_x": [32], "kind": [1, 2]}
    tune(source, params=params, cache=tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text())["cache"]["32,2"]["__error__"] == "CompilationFailedConfig"
    results = tune(source, params=params, cache=tmp_path / "c.json", simulation_mode=True)
    assert isinstance(results[1]["__error__"], kernel_tuner.CompilationFailedConfig) and math.isinf(results[1]["time"])


def test_files_of_results(tmp_path: pathlib.Path) -> None:
    params = {"block_size_x": [32, 64]}
    results, environment = kernel_tuner.tune_kernel("add", ADD, SIZE, arguments(), params, **SHORT)
    file_utils.store_output_file(str(tmp_path / "deep" / "out"), results, params)
    t4 = json.loads((tmp_path / "deep" / "out.json").read_text())
    assert [one["configuration"] for one in t4["results"]] == [{"block_size_x": one["block_size_x"]} for one in results]
    assert t4["results"][0]["invalidity"] == "correct" and {"name": "time", "value": results[0]["time"], "unit": "ms"} in t4["results"][0]["measurements"]
    file_utils.store_metadata_file(str(tmp_path / "meta.json"))
    assert json.loads((tmp_path / "meta.json").read_text())["metadata"]["operating_system"] == "Linux"
    kernel_tuner.store_results(tmp_path / "best.json", "add", ADD, params, SIZE, results, environment, top=0)
    kernel_tuner.store_results(tmp_path / "best.json", "add", ADD, params, (SIZE, 2), results, {"device_name": "Card 2"}, top=1e6)
    best = TuneResults(tmp_path / "best.json")
    assert best.get_best_config(environment["device_name"], SIZE) == {"block_size_x": results[0]["block_size_x"]} == best.get_best_config()
    kernel_tuner.create_device_targets(tmp_path / "best.h", tmp_path / "best.json")
    header = (tmp_path / "best.h").read_text()
    assert "defined(TARGET_Card_2)" in header and header.count(f"#define block_size_x {results[0]['block_size_x']}\n") >= 2
    with pytest.raises(pascaline.ArgumentError, match="is of the kernel add, not sub"):
        kernel_tuner.store_results(tmp_path / "best.json", "sub", ADD, params, SIZE, results, environment)


def test_a_kernel_is_a_function() -> None:
    zeros, a, n = arguments()
    add = PythonKernel("add", ADD, SIZE, [zeros, a, n], {"block_size_x": 64}, inputs=[False, True, True], outputs=[True, False, False], device="emulator")
    for values in (a, a + 3):
        (out,) = add(zeros, values, n)
        np.testing.assert_array_equal(out, values + 1)
    with pytest.raises(pascaline.ArgumentError, match=r"args\[2\]: the scalar is 600 in this kernel"):
        add(zeros, a, np.int32(5))


def test_names_of_strategies() -> None:
    results = tune(strategy=kernel_tuner.strategies.genetic_algorithm, strategy_options={"max_fevals": 2}, parallel=True, log=10, verbose=True)
    assert len(results) == 2
    with pytest.raises(AttributeError, match="the strategy 'magic' is unknown"):
        kernel_tuner.strategies.magic


def test_words_of_results() -> None:
    results = [{"a": 1, "time": 2.0}, {"a": 2, "time": 1.0}, {"a": 3, "time": 0.5, "__error__": util.InvalidConfig()}]
    assert util.get_best_config(results, "time") == results[1]
    assert util.get_config_string(results[0], units={"time": "ms"}) == "a=1, time=2.000ms" and util.get_instance_string({"a": 1, "b": "x"}) == "1_x"
    assert util.get_pareto_results(results, ["a", "time"], [True, False]) == [results[1]]
    assert util.get_objective_defaults(None, None) == ("time", False)
    assert json.loads(json.dumps({"a": np.float32(2), "b": np.arange(2)}, cls=util.NpEncoder)) == {"a": 2.0, "b": [0, 1]}


def test_measurements_of_sensors_are_part_of_results(tmp_path: pathlib.Path) -> None:
    tune(into=tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "tuned.db")) as database, database:
        database.execute("UPDATE trials SET energy_mj = 250, registers = 21, static_shared_bytes = 128 WHERE stage = 'finals'")
        database.execute("UPDATE samples SET temperature_c = 60, sm_clock_mhz = 1500, power_w = 40")
    space = next(tmp_path.glob("add-*.json")).stem
    for one in Trials(str(tmp_path / "tuned.db"), space).results(Space(Request("add", ADD, SIZE, arguments(), {"block_size_x": [32, 64]}, (None, None, None)))):
        known = {"energy": 0.25, "power": 40, "temperature": 60, "core_freq": 1500, "registers": 21, "shared_bytes": 128}
        assert {name: one[name] for name in known} == known
        nvml = NVMLObserver(["nvml_energy", "nvml_power", "temperature", "core_freq"])
        nvml.take(one)
        assert nvml.get_results() == {"nvml_energy": 0.25, "nvml_power": 40, "temperature": 60, "core_freq": 1500}
        registers = RegisterObserver()
        registers.take(one)
        assert registers.get_results() == {"num_regs": 21}


WEIGHTED = """__constant__ float weights[4];
__global__ void add(float *c, const float *a, float *given, float scale, int n) {
  int i = blockIdx.x * block_size_x + threadIdx.x;
  if (i < n) c[i] = scale * a[i] * (use_constant ? weights[i % 4] : given[i % 4]); }"""


@pytest.mark.parametrize("is_argument", [True, False])
def test_arrays_are_copied_to_constant_memory(is_argument: bool) -> None:
    c, a, n = arguments()
    weights = np.array([1.5, -2, 0.25, 3], np.float32)
    given = [c, a, weights if is_argument else np.ones(4, np.float32), np.float32(0.1), n]
    answer = [np.float32(0.1) * a * np.tile(weights, SIZE // 4), None, None, None, None]
    params = {"block_size_x": [32, 64], "use_constant": [1, 0] if is_argument else [1]}
    for options in ({"answer": answer}, {}):
        results = right(tune(WEIGHTED, given=given, params=params, cmem_args={"weights": weights.copy()}, **options))
        assert len(results) == 2 * len(params["use_constant"])
    after = kernel_tuner.run_kernel("add", WEIGHTED, SIZE, given, {"block_size_x": 32, "use_constant": 1}, device="emulator",
                                    cmem_args={"weights": weights})
    np.testing.assert_allclose(after[0], answer[0], rtol=1e-6)


def test_template_arguments_of_a_parameter_do_not_end_it() -> None:
    signature = Signature("k", "template <int N> struct V {}; extern \"C\" __global__ void k(const V<4>* a, Pair<int, 4> *b, int n) {}")
    assert [parameter.name for parameter in signature.parameters] == ["a", "b", "n"]
    assert [parameter.is_written for parameter in signature.parameters] == [False, True, False]
