"""Operations on NumPy arrays, by the processor and on the emulated device."""

import multiprocessing
import pathlib
import threading

import numpy as np
import pytest

import pascaline
from pascaline import ops

random = np.random.default_rng(1)


def draw(*shape: int) -> np.ndarray:
    return random.standard_normal(shape).astype(np.float32)


@pytest.fixture(params=[None, "emulator"])
def device(request: pytest.FixtureRequest) -> str | None:
    return request.param


@pytest.mark.parametrize("rows", [1, 20])
def test_matmul(rows: int, device: str | None) -> None:
    a, b = draw(rows, 32), draw(48, 32)
    np.testing.assert_allclose(ops.matmul(a, b, device=device), a @ b.T, rtol=1e-4, atol=1e-4)


def test_matmul_with_bias_and_residual(device: str | None) -> None:
    a, b, bias, residual = draw(4, 32), draw(16, 32), draw(16), draw(4, 16)
    out = np.full((4, 16), np.nan, np.float32)
    assert ops.matmul(a, b, bias=bias, residual=residual, epilogue="bias_residual", out=out, device=device) is out
    np.testing.assert_allclose(out, a @ b.T + bias + residual, rtol=1e-4, atol=1e-4)


def test_norms_and_softmax(device: str | None) -> None:
    x, weight, bias = draw(3, 64), draw(64), draw(64)
    rms = x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-6) * weight
    np.testing.assert_allclose(ops.rmsnorm(x, weight, device=device), rms, rtol=1e-4, atol=1e-5)
    layer = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-6) * weight + bias
    np.testing.assert_allclose(ops.layernorm(x, weight, bias, device=device), layer, rtol=1e-4, atol=1e-5)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(ops.softmax(x, device=device), e / e.sum(1, keepdims=True), rtol=1e-4, atol=1e-6)


def test_log_probability(device: str | None) -> None:
    x, targets = draw(4, 50), np.array([7, 49, -1, 50], np.int32)
    logs = x - x.max(1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(1, keepdims=True))
    expected = [logs[0, 7], logs[1, 49], 0, 0]  # the last two have no target
    np.testing.assert_allclose(ops.log_probability(x, targets, device=device), expected, rtol=1e-5, atol=1e-6)


def test_elementwise_in_place_and_by_type(device: str | None) -> None:
    a, b = draw(5, 16), draw(5, 16)
    expected = a + b
    assert ops.add(a, b, out=a, device=device) is a
    np.testing.assert_array_equal(a, expected)
    half = np.empty((5, 16), np.float16)
    np.testing.assert_array_equal(ops.convert(b, out=half, device=device), b.astype(np.float16))
    np.testing.assert_allclose(ops.silu_multiply(a, b, device=device), a / (1 + np.exp(-a)) * b, rtol=1e-4, atol=1e-6)


def test_transpose_and_gather(device: str | None) -> None:
    x = draw(12, 20)
    np.testing.assert_array_equal(ops.transpose(x, device=device), x.T)
    indices = np.array([3, 0, 11], np.int32)
    np.testing.assert_array_equal(ops.gather(x, indices, device=device), x[indices])


def test_attention(device: str | None) -> None:
    q, k, v = draw(6, 2, 16), draw(6, 1, 16), draw(6, 1, 16)
    scores = np.einsum("qhd,kd->hqk", q, k[:, 0]) / 4
    scores[:, np.triu_indices(6, 1)[0], np.triu_indices(6, 1)[1]] = -np.inf
    weights = np.exp(scores - scores.max(2, keepdims=True))
    expected = np.einsum("hqk,kd->qhd", weights / weights.sum(2, keepdims=True), v[:, 0])
    np.testing.assert_allclose(ops.attention_prefill(q, k, v, device=device), expected, rtol=1e-4, atol=1e-5)
    decoded = ops.attention_decode(q[5].copy(), k, v, np.array([6], np.int32), device=device)
    np.testing.assert_allclose(decoded, expected[5], rtol=1e-4, atol=1e-5)


def test_memory_is_used_where_it_lies() -> None:
    wide = draw(6, 1, 40)  # rows farther apart than they are long
    q = wide[:, :, :16]
    k, v = draw(6, 1, 16), draw(6, 1, 16)
    np.testing.assert_array_equal(ops.attention_prefill(q, k, v), ops.attention_prefill(q.copy(), k, v))


class Exported:
    """Only DLPack, as another library's arrays."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __dlpack__(self, **arguments: object) -> object:
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self) -> object:
        return self.array.__dlpack_device__()


def test_arrays_of_other_libraries() -> None:
    x = draw(3, 16)
    out = np.empty_like(x)
    ops.gelu_tanh(Exported(x), out=out)
    np.testing.assert_array_equal(out, ops.gelu_tanh(x))
    with pytest.raises(TypeError, match="out: Exported cannot make an array"):
        ops.gelu_tanh(Exported(x))


def test_several_threads_at_once() -> None:
    a, b = draw(4, 64), draw(64, 64)
    expected = ops.matmul(a, b)
    results: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: results.append(ops.matmul(a, b))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and all((result == expected).all() for result in results)


def call_in_child(queue: object) -> None:
    try:
        ops.add(draw(2, 4), draw(2, 4))
        queue.put("it ran")  # type: ignore[attr-defined]
    except pascaline.Error as error:
        queue.put(str(error))  # type: ignore[attr-defined]


def test_a_forked_process_is_refused() -> None:
    ops.add(draw(2, 4), draw(2, 4))
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=call_in_child, args=(queue,))
    child.start()
    assert "forked" in queue.get(timeout=20)
    child.join()


def test_capture_counts_shapes_for_a_sweep(tmp_path: pathlib.Path) -> None:
    x = draw(32, 48)
    with pascaline.capture() as outer:
        ops.transpose(x)
        with pascaline.capture() as inner:
            for _ in range(2):
                ops.transpose(x, device="emulator")
            ops.matmul(draw(3, 64), draw(16, 64))
            with pytest.raises(pascaline.ArgumentError):
                ops.transpose(x, out=x)  # what is refused does not count
    transposed = {"kernel": "transpose", "dimensions": {"ROWS": 32, "COLUMNS": 48}, "types": {"STORAGE": "float32"}}
    assert inner.problems[0] == {**transposed, "count": 2} and outer.problems[0] == {**transposed, "count": 3}
    assert [problem["kernel"] for problem in inner.problems] == ["transpose", "matvec"]
    ops.transpose(x)
    assert outer.problems[0]["count"] == 3
    outer.write(tmp_path / "mine.json")
    summary = pascaline.sweep(workload=tmp_path / "mine.json", db=tmp_path / "x.db", kernel="transpose", device="emulator",
                              trials=1, jobs=1, preheat=0, finalists=1, rounds=2, min_samples=3, max_samples=3)
    assert summary["problems_done"] == 1
    assert pascaline.winners(tmp_path / "x.db")[0]["problem"] == "transpose ROWS=32 COLUMNS=48 STORAGE=float32"
    for file, message in [("mine", "ends in .json"), ("my shapes.json", "not a name")]:
        with pytest.raises(pascaline.ArgumentError, match=message):
            outer.write(tmp_path / file)
    with pascaline.capture() as nothing:
        pass
    with pytest.raises(pascaline.ArgumentError, match="no operation was called"):
        nothing.write(tmp_path / "none.json")


def test_use_database(swept: object) -> None:
    ops.use_database(swept)  # type: ignore[arg-type]
    x = draw(32, 48)
    np.testing.assert_array_equal(ops.transpose(x, device="emulator"), x.T)
    ops.use_database(None)
