"""Kernels of one's own, and scripts for Kernel Tuner, on the emulated device."""

import contextlib
import pathlib
import re
import runpy
import shutil
import sqlite3
import warnings
from typing import Any

import numpy as np
import pytest

import pascaline
from pascaline import kernel_tuner

ROOT = pathlib.Path(__file__).parents[2]
SAXPY = ROOT / "examples" / "own_kernel" / "saxpy.cu"
SHORT: dict[str, Any] = {"preheat": 0, "jobs": 2, "finalists": 1, "rounds": 2}
random = np.random.default_rng(2)


def draw(count: int) -> np.ndarray:
    return random.standard_normal(count).astype(np.float32)


def aligned(count: int) -> np.ndarray:
    memory = np.zeros(4 * count + 16, np.uint8)
    return memory[-memory.ctypes.data % 16 :][: 4 * count].view(np.float32)


def test_a_kernel_is_launched_where_arrays_lie_and_on_copies() -> None:
    kernel = pascaline.Kernel(SAXPY)
    assert kernel.name == "saxpy" and kernel.arrays == ["x", "y", "out"]
    x, y, out = aligned(1001), aligned(1001), aligned(1001)
    x[:], y[:] = draw(1001), draw(1001)
    kernel.launch(x, y, out, N=1001)
    np.testing.assert_allclose(out, 3 * x + y, rtol=1e-6)
    out[:] = 0
    kernel(x, y, out, N=np.int64(1001))  # a number of another library
    np.testing.assert_allclose(out, 3 * x + y, rtol=1e-6)
    shifted = np.full(1002, np.nan, np.float32)[1:]  # an address that no launch takes
    kernel.run(x, y, shifted, N=1001, device="emulator")
    np.testing.assert_array_equal(shifted, out)


def test_a_pipeline_is_tuned_and_launched_as_one_kernel(tmp_path: pathlib.Path) -> None:
    kernel = pascaline.Kernel(ROOT / "examples" / "kernels" / "dot_product.cu", db=tmp_path / "own.db")
    assert kernel.arrays == ["x", "y", "out"]
    x, y, out = draw(5000), draw(5000), np.empty(1, np.float32)
    summary = kernel.tune({"N": 5000}, device="emulator", trials=3, min_samples=3, max_samples=3, **SHORT)
    assert summary["ok"] >= 3 and len(kernel.winners()) == 1
    (plan,) = kernel.explain({"N": 5000}, device="emulator")
    assert plan["provenance"] == "exact"
    kernel.run(x, y, out, N=5000, device="emulator")
    np.testing.assert_allclose(out[0], np.dot(x.astype(np.float64), y), rtol=1e-4)


def test_a_kernel_is_tuned_and_its_winner_launched(tmp_path: pathlib.Path) -> None:
    kernel = pascaline.Kernel(SAXPY, db=tmp_path / "own.db")
    x, y, out = draw(4096), draw(4096), np.empty(4096, np.float32)
    kernel.run(x, y, out, N=4096, device="emulator")  # before there is a database
    (plan,) = kernel.explain({"N": 4096}, device="emulator")
    assert plan["provenance"] == "default"
    summary = kernel.tune({"N": 4096}, device="emulator", trials=3, min_samples=3, max_samples=3, **SHORT)
    assert summary["ok"] >= 3 and len(kernel.winners()) == 1
    (plan,) = kernel.explain({"N": 4096}, device="emulator")
    assert plan["provenance"] == "exact"
    kernel.run(x, y, out, N=4096, device="emulator")
    np.testing.assert_allclose(out, 3 * x + y, rtol=1e-6)
    assert {parameter["name"] for parameter in kernel.space["parameters"]} == {"BLOCK", "VECTOR"}


BAD: list[tuple[Any, dict[str, Any], str]] = [
    (lambda x: (x, x), {"N": 8}, r"saxpy takes 3 arrays \(x, y, out\), not 2"),
    (lambda x: (x, x, x), {"N": 9}, "x: it has 8 elements, but saxpy N=9 takes 9"),
    (lambda x: (x, x.astype(np.float64), x), {"N": 8}, "y: it is float64, but saxpy takes float32"),
    (lambda x: (x, x, x), {"M": 8}, "M"),
    (lambda x: (x, x, x), {"N": 0}, "N"),
    (lambda x: (x, x, x), {"N": "many"}, "N"),
    (lambda x: (x, x, x[::-1]), {"N": 8}, "out: its elements do not lie row by row"),
    (lambda x: (x, 7, x), {"N": 8}, "y: int is not an array"),
]


@pytest.mark.parametrize("arrays, problem, message", BAD)
@pytest.mark.parametrize("how", ["launch", "run"])
def test_what_does_not_fit_is_refused(how: str, arrays: Any, problem: dict[str, Any], message: str) -> None:
    kernel = pascaline.Kernel(SAXPY)
    with pytest.raises((pascaline.ArgumentError, TypeError), match=message):
        getattr(kernel, how)(*arrays(aligned(8)), device="emulator", **problem)


def test_files_that_do_not_fit_are_refused(tmp_path: pathlib.Path) -> None:
    for source, space, message in [(tmp_path / "k.cu", None, "source: there is no file"), (tmp_path / "k.txt", None, ".cu"),
                                   (SAXPY, tmp_path / "other.json", "must be called saxpy.json")]:
        with pytest.raises(pascaline.ArgumentError, match=message):
            pascaline.Kernel(source, space)
    shutil.copy(SAXPY, tmp_path / "saxpy.cu")
    (tmp_path / "saxpy.json").write_text("{}")
    with pytest.raises(pascaline.SpaceError):
        pascaline.Kernel(tmp_path / "saxpy.cu")
    with pytest.raises(TypeError, match="db is not an argument"):
        pascaline.Kernel(SAXPY).tune(db="x.db")


VECTOR_ADD = """
__global__ void vector_add(float *c, const float *a, const float * b, int n) {
    int i = blockIdx.x * block_size_x + threadIdx.x;
    if (i < n) {
        c[i] = a[i] + b[i];
    }
}
"""


def vector_add(size: int = 3000) -> list[Any]:
    a, b = draw(size), draw(size)
    return [np.zeros_like(a), a, b, np.int32(size)]


def test_dropped_trials_are_results(tmp_path: pathlib.Path) -> None:
    arguments = vector_add()

    def tune() -> list[Any]:
        return kernel_tuner.tune_kernel("vector_add", VECTOR_ADD, 3000, arguments, {"block_size_x": [32, 64, 128]},
                                        device="emulator", iterations=3, into=tmp_path, **SHORT)[0]

    tune()
    with contextlib.closing(sqlite3.connect(tmp_path / "tuned.db")) as database, database:
        database.execute("UPDATE trials SET status = 'dropped', reason = 'slower' WHERE stage = 'search'")
    dropped = pascaline.trials(tmp_path / "tuned.db", status="dropped")
    assert len(dropped) == 3 and all(trial["median_us"] > 0 for trial in dropped)
    results = tune()
    assert sorted(result["block_size_x"] for result in results) == [32, 64, 128]
    assert all(0 < result["time"] < 1000 for result in results)
    assert len(pascaline.trials(tmp_path / "tuned.db", status="dropped")) == 3, "they are not tried again"


def test_tune_kernel_tries_all(tmp_path: pathlib.Path) -> None:
    arguments = vector_add()
    answer = [arguments[1] + arguments[2], None, None, None]
    params = {"block_size_x": [32, 64, 128]}
    results, environment = kernel_tuner.tune_kernel(
        "vector_add", VECTOR_ADD, 3000, arguments, params, answer=answer, restrictions=["block_size_x > 32"],
        device="emulator", lang="CUDA", verbose=True, iterations=3, into=tmp_path, **SHORT)
    assert sorted(result["block_size_x"] for result in results) == [64, 128]
    assert [result["time"] for result in results] == sorted(result["time"] for result in results)
    assert all(0 < result["time"] < 1000 for result in results) and environment["device_name"]
    assert len(list(tmp_path.glob("vector_add-*.cu"))) == 1 and (tmp_path / "tuned.db").exists()
    again, _ = kernel_tuner.tune_kernel("vector_add", VECTOR_ADD, 3000, arguments, params, device="emulator", iterations=3,
                                        restrictions=["block_size_x > 32"], into=tmp_path, **SHORT)
    assert {result["block_size_x"] for result in again} == {64, 128}


def test_tune_kernel_compares_with_the_answer() -> None:
    arguments = vector_add()
    wrong = [arguments[1] - arguments[2], None, None, None]
    with pytest.raises(pascaline.ArgumentError, match=r"answer: .* differs in arguments\[0\]"):
        kernel_tuner.tune_kernel("vector_add", VECTOR_ADD, 3000, arguments, {"block_size_x": [64]}, answer=wrong,
                                 device="emulator")
    with pytest.raises(pascaline.ArgumentError, match="verify refuses"):
        kernel_tuner.tune_kernel("vector_add", VECTOR_ADD, 3000, arguments, {"block_size_x": [64]}, answer=wrong,
                                 verify=lambda answer, result, atol: False, device="emulator")


SCATTER = """__global__ void scatter(float *o, const float *a, const int *to, int n) {
  int i = blockIdx.x * block_size_x + threadIdx.x; if (i < n) o[to[i]] = (wrong ? 2 : 1) * a[i]; }"""


def scatter(**options: Any) -> list[dict[str, Any]]:
    """A permutation: right on the script's arrays, a race on others."""
    a, to = draw(3000), np.random.default_rng(3).permutation(3000).astype(np.int32)
    answer = np.zeros(3000, np.float32)
    answer[to] = a
    return kernel_tuner.tune_kernel(
        "scatter", SCATTER, 3000, [np.zeros(3000, np.float32), a, to, np.int32(3000)],
        {"wrong": [1, 0], "block_size_x": [64, 128, 256]}, answer=[answer, None, None, None], device="emulator", iterations=3,
        **{**SHORT, **options})[0]


def test_every_configuration_is_judged_on_the_scripts_arrays(tmp_path: pathlib.Path) -> None:
    results = scatter(into=tmp_path)
    right, wrong = results[:3], results[3:]
    assert sorted(result["block_size_x"] for result in right) == [64, 128, 256]
    assert all(result["wrong"] == 0 and "__error__" not in result and result["time"] < 1000 for result in right)
    assert [result["time"] for result in right] == sorted(result["time"] for result in right)
    assert len(wrong) == 3 and all(result["wrong"] == 1 and result["time"] == np.inf for result in wrong)
    assert all(isinstance(result["__error__"], kernel_tuner.WrongResultConfig) for result in wrong)
    assert all("differs in arguments[0]" in result["reason"] for result in wrong)
    # What is left behind never launches what is wrong, although the script's default was.
    (source,) = tmp_path.glob("scatter-*.cu")
    kept = pascaline.Kernel(source, db=tmp_path / "tuned.db")
    assert kept.winners()[0]["config"].split()[-1] == "wrong=0"
    assert kept.explain(device="emulator")[0]["config"]["wrong"] == 0
    out, a = np.zeros(3000, np.float32), draw(3000)
    kept.run(out, a, np.arange(3000, dtype=np.int32), device="emulator")
    np.testing.assert_array_equal(out, a)


PARTIAL_SUMS = """__global__ void sums(float *s, const float *x, int n) {
  __shared__ float all[block_size_x];
  float t = 0;
  for (int i = blockIdx.x * block_size_x + threadIdx.x; i < n; i += gridDim.x * block_size_x) t += x[i];
  all[threadIdx.x] = t; __syncthreads();
  for (int k = block_size_x / 2; k > 0; k /= 2) { if (threadIdx.x < k) all[threadIdx.x] += all[threadIdx.x + k]; __syncthreads(); }
  if (threadIdx.x == 0) s[blockIdx.x] = all[0];
}"""


def test_verify_alone_decides_what_is_right() -> None:
    x, seen = draw(5000) + 1, []

    def verify(answer: Any, result: list[Any], atol: float) -> bool:
        seen.append(answer)
        return bool(np.isclose(result[0].sum(), x.sum(), rtol=1e-4)) and result[2] == 5000

    results, _ = kernel_tuner.tune_kernel(
        "sums", PARTIAL_SUMS, 8 * 256, [np.zeros(8, np.float32), x, np.int32(5000)], {"block_size_x": [64, 128, 256]},
        grid_div_x=[256], verify=verify, device="emulator", iterations=3, **SHORT)
    assert len(results) == 3 and not any("__error__" in result for result in results)
    assert seen == [None] * 3, "each once"


def test_a_verify_that_raises_costs_its_configuration_only() -> None:
    calls: list[int] = []

    def tune(raises: set[int]) -> list[dict[str, Any]]:
        def verify(answer: Any, result: list[Any]) -> bool:
            calls.append(1)
            if len(calls) in raises:
                raise ZeroDivisionError("of nothing")
            return True

        calls.clear()
        return kernel_tuner.tune_kernel("vector_add", VECTOR_ADD, 3000, [np.zeros(3000, np.float32), draw(3000), draw(3000), np.int32(3000)],
                                        {"block_size_x": [64, 128]}, verify=verify, device="emulator", iterations=3, **SHORT)[0]

    results = tune({2})
    assert len(results) == 2 and "__error__" not in results[0]
    assert results[1]["reason"] == "verify raised ZeroDivisionError: of nothing"
    with pytest.raises(pascaline.ArgumentError, match="none of 2 configurations computes it: verify raised ZeroDivisionError") as raised:
        tune({1, 2})
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_failures_are_results_with_their_reason() -> None:
    source = VECTOR_ADD.replace("c[i] =", "c[i] = kind == 1 ? nowhere_1 : kind == 2 ? i : ").replace(
        "__global__", "#if kind != 1\n#define nowhere_1 0\n#endif\n__global__", 1)
    results, _ = kernel_tuner.tune_kernel("vector_add", source, 3000, vector_add(), {"block_size_x": [64], "kind": [0, 1, 2]},
                                          device="emulator", iterations=3, metrics={"twice": lambda p: 2 * p["time"]}, **SHORT)
    assert results[0]["kind"] == 0 and "__error__" not in results[0]
    failed = {result["kind"]: result for result in results[1:]}
    assert isinstance(failed[1]["__error__"], kernel_tuner.CompilationFailedConfig) and "nowhere_1" in failed[1]["reason"]
    assert failed[1]["__error__"] == "CompilationFailedConfig" and isinstance(failed[1]["__error__"], kernel_tuner.ErrorConfig)
    assert isinstance(failed[2]["__error__"], kernel_tuner.WrongResultConfig) and failed[2]["reason"].startswith("wrong_result: ")
    assert "twice" in results[0] and not any("twice" in result for result in results[1:])


def test_trials_run_on_the_scripts_arrays() -> None:
    """On random contents the walk would not end."""
    walk = """__global__ void walk(int *o, const int *next, int n) {
      int i = blockIdx.x * block_size_x + threadIdx.x, steps = 0;
      if (i < n) { for (int k = i; k != n - 1; k = next[k]) ++steps; o[i] = steps; } }"""
    following = np.minimum(np.arange(200) + 1, 199).astype(np.int32)
    results, _ = kernel_tuner.tune_kernel("walk", walk, 200, [np.zeros(200, np.int32), following, np.int32(200)],
                                          {"block_size_x": [64, 128]}, answer=[(199 - np.arange(200)).astype(np.int32), None, None],
                                          device="emulator", iterations=3, **SHORT)
    assert len(results) == 2 and all("__error__" not in one for one in results)


THREADS = "__global__ void threads(int *o) { if (threadIdx.x == 0 && threadIdx.y == 0) o[0] = blockDim.x * 10000 + blockDim.y; }"


@pytest.mark.parametrize("params, names, threads", [
    ({"block_size_x": 64}, None, (64, 1)), ({"BLOCK_SIZE_X": 64}, None, (64, 1)), ({"Block_Size_x": 64, "BLOCK_SIZE_Y": 2}, None, (64, 2)),
    ({"block_size_x": 32, "BLOCK_SIZE_X": 64}, None, (32, 1)), ({"BLOCK_SIZE_Y": 2, "block_size_x": 64}, None, (64, 2)),
    ({"bx": 64, "BLOCK_SIZE_Y": 2}, ["bx"], (64, 2)), ({"bx": 64, "by": 4}, ("bx", "by"), (64, 4)),
    ({"bx": 64}, ["bx", "block_size_y", "block_size_z"], (64, 1)), ({"BLOCK_SIZE_X": 64}, ["block_size_x"], (64, 1))])
def test_block_size_names(params: dict[str, int], names: Any, threads: tuple[int, int]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (out,) = kernel_tuner.run_kernel("threads", THREADS, 1, [np.zeros(1, np.int32)], params, block_size_names=names,
                                         device="emulator")
    assert (out[0] // 10000, out[0] % 10000) == threads


def test_block_size_names_that_name_nothing() -> None:
    def run(params: dict[str, int], names: Any) -> Any:
        return kernel_tuner.run_kernel("threads", THREADS, 1, [np.zeros(1, np.int32)], params, block_size_names=names, device="emulator")

    with pytest.raises(pascaline.ArgumentError, match="block_size_names: tune_params has no 'blok_x'; did you mean 'block_x'"):
        run({"block_x": 64}, ["blok_x"])
    with pytest.raises(pascaline.ArgumentError, match="block_size_names: it has 4 names"):
        run({"unused": 64}, ["unused"] * 4)
    for names in ("unused", [1], 5):
        with pytest.raises(TypeError, match="block_size_names"):
            run({"unused": 64}, names)
    with pytest.warns(UserWarning, match="tune_params has no block_size_x, so that blocks have 256 threads"):
        assert run({"unused": 64}, None)[0][0] // 10000 == 256


def test_headers_beside_the_source_are_found(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kernels" / "inc").mkdir(parents=True)
    (tmp_path / "shared").mkdir()
    (tmp_path / "kernels" / "twice.cu").write_text(
        '#include "inc/h.cuh"\n  # include "../shared/h.cuh"\n// #include "nothing.h"\n'
        "__global__ void twice(float *o, const float *a, int n) {\n"
        "  int i = blockIdx.x * block_size_x + threadIdx.x; if (i < n) o[i] = twice_of(a[i]) + one(); }\n")
    (tmp_path / "kernels" / "inc" / "h.cuh").write_text(
        '#pragma once\n#include "deep.cuh"\n#include "inc/deep.cuh"\n__device__ inline float twice_of(float v) { return FACTOR * v; }\n')
    (tmp_path / "shared" / "h.cuh").write_text("#pragma once\n__device__ inline float one() { return 1.0f; }\n")
    monkeypatch.chdir(tmp_path)
    a, into = draw(3000), tmp_path / "into"
    for factor in (2, 3):  # of one folder, and one kernel
        (tmp_path / "kernels" / "inc" / "deep.cuh").write_text(f'#pragma once\n#include "h.cuh"\n#define FACTOR {factor}.0f\n')
        results, _ = kernel_tuner.tune_kernel(
            "twice", "kernels/twice.cu", 3000, [np.zeros_like(a), a, np.int32(3000)], {"block_size_x": [64, 128]},
            answer=[factor * a + 1, None, None], device="emulator", iterations=3, into=into, **SHORT)
        assert len(results) == 2 and not any("__error__" in result for result in results), results


def test_a_chain_of_comparisons_means_what_it_means_in_python() -> None:
    for restriction in ("32 < block_size_x < 128", lambda p: 32 < p["block_size_x"] < 128, "32 < block_size_x <= 64 != 128"):
        results, _ = kernel_tuner.tune_kernel("vector_add", VECTOR_ADD, 3000, vector_add(), {"block_size_x": [32, 64, 128, 256]},
                                              restrictions=restriction, device="emulator", iterations=3, **SHORT)
        assert [result["block_size_x"] for result in results] == [64]


def test_texts_of_any_form_are_told_again() -> None:
    texts = ["a", "int, 2", "S<1, 2>", "x+1"]
    results, _ = kernel_tuner.tune_kernel("vector_add", VECTOR_ADD, 3000, vector_add(), {"block_size_x": [64], "text": texts},
                                          device="emulator", iterations=3, **SHORT)
    assert sorted(result["text"] for result in results) == sorted(texts)


def test_run_kernel_gives_copies() -> None:
    arguments = vector_add()
    after = kernel_tuner.run_kernel("vector_add", VECTOR_ADD, 3000, arguments, {"block_size_x": 96}, device="emulator")
    np.testing.assert_array_equal(after[0], arguments[1] + arguments[2])
    assert not arguments[0].any() and after[3] == 3000


TILED = """
#include <cstddef>
template <int W> __device__ inline void row(const float* in, float* out, int n, int y) {
  for (int x = threadIdx.x; x < n; x += W) out[y * n + x] = factor * in[y * n + x];
}
/* vector(a, b) { } */ extern "C" __global__ void scale(const float* in, float* __restrict__ out, const int n) {
  extern __shared__ float buffer[];
  for (int i = 0; i < tile_y; ++i) {
    const int y = (blockIdx.y * block_size_y + threadIdx.y) * tile_y + i;
    buffer[threadIdx.y * block_size_x + threadIdx.x] = 1;
    if (y < n) row<block_size_x>(in, out, n, y);
  }
}
"""


def test_divisors_shared_memory_and_kinds_of_values() -> None:
    a = draw(40 * 40).reshape(40, 40)
    arguments = [a, np.zeros_like(a), np.int32(40)]
    results, _ = kernel_tuner.tune_kernel(
        "scale", TILED, (1, 40), arguments,
        {"block_size_x": [16, 32], "block_size_y": [2], "tile_y": [1, 3], "factor": [2.0], "kind": ["fast", "slow"]},
        grid_div_x=[], grid_div_y=["block_size_y", "tile_y"], restrictions=["block_size_x * tile_y <= 64"],
        smem_args={"size": "block_size_x * block_size_y * 4"}, answer=[None, 2 * a, None], device="emulator", iterations=2,
        **SHORT)
    tried = {(result["block_size_x"], result["tile_y"], result["kind"]) for result in results}
    assert tried == {(x, y, kind) for x, y in [(16, 1), (16, 3), (32, 1)] for kind in ("fast", "slow")}
    assert all(result["factor"] == 2.0 for result in results)


def two_lines(p: Any) -> bool:
    """Not one expression."""
    p = dict(p)
    return bool(p["block_size_x"] > 32)


def one_line(p: Any) -> bool:
    """Blocks of more than 32 threads."""
    return p["block_size_x"] > least


least = 32
AT_LEAST: list[Any] = [
    lambda p: p["block_size_x"] > 32, [lambda p: p["block_size_x"] > least, lambda p: p["block_size_x"] < 4096],
    lambda block_size_x: block_size_x % 64 == 0, one_line, "block_size_x > 32", ["block_size_x >= 64"]]


@pytest.mark.parametrize("which", range(len(AT_LEAST)))
def test_restrictions_are_texts_or_functions(which: int) -> None:
    at_most = 64
    results, _ = kernel_tuner.tune_kernel(
        "vector_add", VECTOR_ADD, "3000", vector_add(), {"block_size_x": [32, 64]}, restrictions=AT_LEAST[which],
        grid_div_x=lambda p: p["block_size_x"] + 0 * at_most, block_size_names=None, strategy=None, platform=0, observers=None,
        objective="time", device="emulator", iterations=3,
        metrics={"blocks": lambda p: 3000 / p["block_size_x"], "twice": "2 * blocks"}, strategy_options={"time_limit": 50}, **SHORT)
    (result,) = results
    assert result["block_size_x"] == 64 and result["blocks"] == 3000 / 64 and result["twice"] == 6000 / 64


def test_verify_is_called_as_kernel_tuner_calls_it() -> None:
    arguments, seen = vector_add(), []
    answer = [arguments[1] + arguments[2], None, None, None]

    def given(wanted: Any, found: Any, *rest: Any) -> bool:
        seen.append(rest)
        return bool(np.allclose(wanted[0], found[0]))

    for verify in [lambda a, b: given(a, b), lambda a, b, atol=None: given(a, b, atol), lambda a, b, tolerance: given(a, b, tolerance)]:
        kernel_tuner.tune_kernel("vector_add", VECTOR_ADD, 3000, arguments, {"block_size_x": [64]}, answer=answer, verify=verify,
                                 atol=1e-3, device="emulator", iterations=3, **SHORT)
    assert seen == [(), (1e-3,), (1e-3,)]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"kernel_name": "vector sum"}, "kernel_name"),
    ({"kernel_name": "other"}, "no __global__ function 'other'"),
    ({"kernel_source": lambda params: ""}, "kernel_source: it has no __global__ function"),
    ({"kernel_source": lambda params: 5}, "kernel_source: the function gives a int"),
    ({"kernel_source": lambda params: params["nothing"]}, "kernel_source: a function fails for .*KeyError: 'nothing'"),
    ({"kernel_source": "no_such_file.cu"}, "kernel_source: the file .* does not exist"),
    ({"problem_size": "n"}, "problem_size: in 'n': unknown name 'n'"),
    ({"problem_size": 0}, "problem_size"),
    ({"problem_size": (1, 2, 3, 4)}, "problem_size"),
    ({"arguments": []}, "arguments: vector_add takes 4, not 0"),
    ({"arguments": [1, 2, 3, 4]}, r"arguments\[0\]: int"),
    ({"tune_params": {}}, "tune_params"),
    ({"tune_params": {"block_size_x": []}}, "tune_params"),
    ({"tune_params": {"block_size_x": [32, "x"]}}, "tune_params: block_size_x is a block's size, and has values other than whole"),
    ({"tune_params": {"block_size_x": [32], "kind": [None]}}, "tune_params: kind has values that are neither numbers nor texts"),
    ({"tune_params": {"block size": [32]}}, "tune_params.*identifier"),
    ({"restrictions": [lambda p: sum(p.values()) > 99]}, "no configuration meets the conditions"),
    ({"restrictions": lambda p: p["nothing"] > 32}, "restrictions.*nothing"),
    ({"restrictions": [7.5]}, "restrictions: float"),
    ({"restrictions": ["block_size_x >"]}, "restrictions"),
    ({"restrictions": ["block_size_y > 3"]}, "restrictions.*block_size_y"),
    ({"restrictions": ["__import__('os').system('true')"]}, "restrictions"),
    ({"restrictions": ["block_size_x > 64"]}, "no configuration meets the conditions"),
    ({"grid_div_x": ["block_size_z"]}, "grid_div_"),
    ({"smem_args": {"size": "many"}}, "smem_args: in 'many': unknown name 'many'"),
    ({"tune_params": {"block_size_x": [32], **{f"p{i}": [1, 2] for i in range(13)}}, "restrictions": lambda p: len(str(p)) > 1},
     "restrictions: it has more than 4096 values, over block_size_x, p0.* let it read fewer parameters"),
    ({"answer": [None]}, "answer: it has 1 entries for 4"),
    ({"answer": 5}, "answer: int is not a list"),
    ({"answer": [np.zeros(5, np.float32), None, None, None]}, r"answer: the one of arguments\[0\] is \[5\], not \[3000\]"),
    ({"problem_size": lambda p: "block_size_x -"}, "problem_size"),
    ({"iterations": "7"}, "iterations: str"),
    ({"cmem_args": {"d_filter": np.ones(3, np.float32)}}, "cmem_args: the code has no variable 'd_filter'"),
    ({"texmem_args": {"tex": np.ones(3, np.float32)}}, "texmem_args: texture references cannot be set"),
    ({"compiler_options": ["--pre-include=x.h"]}, "compiler_options: .*pre-include=x.h. cannot be taken over"),
    ({"compiler_options": "-O2"}, "compiler_options: it is not a list"),
    ({"observers": [object()]}, "observers|object"),
    ({"objective": "GFLOP/s"}, "objective: 'GFLOP/s' is not time"),
    ({"objective": "speed", "metrics": {"speed": "1 / time"}}, "objective_higher_is_better: say whether more of the objective 'speed'"),
    ({"strategy": "bruteforce"}, "strategy: 'bruteforce' is unknown; did you mean 'brute_force'"),
    ({"strategy": pathlib}, "strategy: one's own"),
    ({"simulation_mode": True}, "simulation_mode: it replays a cache, and no cache is given"),
    ({"defines": {"a b": 1}}, "defines: 'a b' is not an identifier"),
    ({"kernel_source": VECTOR_ADD.replace("c[i] =", "c[i] = nowhere +")}, "none of 2 configurations ran: compile_failed: .*nowhere"),
    ({"lang": "OpenCL"}, "lang"),
    ({"lang": "C"}, "lang: .* code of the host is not run"),
    ({"device": 1.5}, "device"),
    ({"no_such_option": 1}, "no_such_option"),
]


@pytest.mark.parametrize("change, message", WRONG)
def test_what_cannot_be_taken_over_is_named(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"kernel_name": "vector_add", "kernel_source": VECTOR_ADD, "problem_size": 3000,
                             "arguments": vector_add(), "tune_params": {"block_size_x": [32, 64]}, "device": "emulator"}
    with pytest.raises((pascaline.Error, TypeError), match=message):
        kernel_tuner.tune_kernel(**{**given, **change}, **SHORT)


def test_scalars_and_contents_that_do_not_fit() -> None:
    source = """__global__ void f(float* x, /* , float s */ const float* y, const float s, double t,  // float, too
                      float u) { x[threadIdx.x] = s * y[threadIdx.x] + t + u; }"""
    x, y = draw(256), draw(256)
    for s, t, u in [(0.5, -1e-300, 3), (2, 0.1, np.inf), (-0.0, 7, 1e-40), (np.nan, -np.inf, 1)]:
        after = kernel_tuner.run_kernel("f", source, 256, [x, y, np.float32(s), np.float64(t), np.float32(u)], {"unused": 1},
                                        device="emulator")
        np.testing.assert_allclose(after[0], s * y + t + u, rtol=1e-6)
    source = "__global__ void f(float* x, const float* y, float s) { x[threadIdx.x] = s * y[threadIdx.x]; }"
    with pytest.raises(pascaline.ArgumentError, match=r"arguments\[2\]: 0.5 of float64 is passed as 'float s', which is not that type"):
        kernel_tuner.run_kernel("f", source, 256, [x, y, np.float64(0.5)], {"unused": 1}, device="emulator")
    with pytest.raises(pascaline.ArgumentError, match=r"arguments\[2\]: 0.5 of float16 is passed as 'float s', which is not that type"):
        kernel_tuner.run_kernel("f", source, 256, [x, y, np.float16(0.5)], {"unused": 1}, device="emulator")
    with pytest.raises(TypeError, match=r"run_kernel\(\) got an unexpected keyword argument 'color'"):
        kernel_tuner.run_kernel("f", source, 256, [x, y, np.float32(2)], {"unused": 1}, device="emulator", color=1)
    for change in [(0, np.float32(3)), (1, y.astype(np.float64)), (2, np.float64(2)), (2, np.int32(2)), (2, y), (3, np.int64(2**32)), (3, x)]:
        given = [x, y, np.float32(2), np.int32(256)]
        given[change[0]] = change[1]
        with pytest.raises(pascaline.ArgumentError, match=rf"arguments\[{change[0]}\]: .* is passed as .* which is not that type"):
            kernel_tuner.run_kernel("f", source.replace("float s)", "float s, int n)"), 256, given, {"unused": 1}, device="emulator")
    for declared, value in [("int s", np.float32(3)), ("int s", np.int8(-3)), ("int s", np.bool_(True)), ("unsigned s", np.float32(3)),
                            ("unsigned int s", np.int32(-3)), ("long long s", np.int32(-3)), ("unsigned long long s", np.int64(-3)),
                            ("const int* s", y), ("const float* s", y.astype(np.int32)), ("const unsigned* s", y)]:
        code = f"__global__ void f(float* x, {declared}) {{ x[threadIdx.x] = 1; }}"
        with pytest.raises(pascaline.ArgumentError, match=r"arguments\[1\]: .* which is not that type"):
            kernel_tuner.run_kernel("f", code, 256, [x, value], {"unused": 1}, device="emulator")
    for declared, given_value in [("int s", np.int32(-3)), ("int s", np.int64(-3)), ("unsigned s", np.uint32(3)), ("long long s", np.int64(-3)),
                                  ("float s", np.float32(-0.0))]:
        code = f"__global__ void f(float* x, {declared}) {{ x[threadIdx.x] = 1.0f / (float)s; }}"
        after = kernel_tuner.run_kernel("f", code, 256, [x, given_value], {"unused": 1}, device="emulator")
        with np.errstate(divide="ignore"):
            np.testing.assert_array_equal(after[0], np.float32(1) / np.float32(given_value))
    y[3] = np.nan
    after = kernel_tuner.run_kernel("f", source, 256, [x, y, np.float32(2)], {"unused": 1}, device="emulator")
    assert np.isnan(after[0][3]) and np.isfinite(np.delete(after[0], 3)).all()


def test_the_guides_script_is_the_example_and_runs(capsys: pytest.CaptureFixture[str]) -> None:
    guide = (ROOT / "docs" / "python.md").read_text()
    example = ROOT / "examples" / "python" / "kernel_tuner_vector_add.py"
    assert example.read_text().split('"""', 2)[2].strip() in guide
    results = runpy.run_path(str(example), run_name="__main__")["results"]
    assert len(results) == 15 and len(re.findall(r"block_size_x=\d+: \d+\.\d+ ms", capsys.readouterr().out)) == 15
