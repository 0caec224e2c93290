"""Weights in packed formats, on the processor and on the emulated device."""

import itertools
import re
from typing import Any

import numpy as np
import pytest

import pascaline
from pascaline import ops, packed

FORMATS = packed.FORMATS
# Steps from 0 to the largest magnitude. Rounding to the nearest is off by a step / √12 in the root of the mean of squares.
STEPS = {form: 2 ** int(re.findall(r"\d+", form)[0]) / 2 - 0.5 for form in FORMATS}
random = np.random.default_rng(3)


def draw(*shape: int) -> np.ndarray:
    return random.uniform(-1, 1, shape).astype(np.float32)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("shape", [(70, 300), (1, 1), (32, 256)])
def test_what_is_packed_is_nearly_what_it_was(form: packed.Format, shape: tuple[int, int]) -> None:
    weight = draw(*shape)
    matrix = packed.pack(weight, form)
    values = matrix.unpack()
    assert values.shape == shape and matrix.shape == shape and matrix.packed_format == form
    error = np.sqrt(((values - weight) ** 2).mean()) * STEPS[form] * np.sqrt(12)
    # Powers of two fit less than other scales.
    assert error < (1.7 if form == "mxfp4" else 1.2) and (shape == (1, 1) or error > 0.5)
    # To what the format holds, packing is exact, but where scales are scaled themselves.
    if form in ("q8_0", "int8_row"):
        np.testing.assert_allclose(packed.pack(values, form).unpack(), values, rtol=1e-3, atol=1e-5)


def rounded(a: np.ndarray, by_row: bool) -> np.ndarray:
    """Rows as they are rounded for a product: to 127 steps of the largest magnitude of 32 values, or of the row."""
    filled = np.zeros((a.shape[0], -a.shape[1] % 32 + a.shape[1]), np.float32)
    filled[:, : a.shape[1]] = a
    blocks = filled.reshape(a.shape[0], 1 if by_row else -1, filled.shape[1] if by_row else 32)
    scale = np.abs(blocks).max(2, keepdims=True) / 127
    return (np.rint(blocks / scale) * scale).reshape(filled.shape)[:, : a.shape[1]]


@pytest.mark.parametrize("rows, device, form", [*itertools.product([3, 20], [None], FORMATS),
                                                *itertools.product([3, 20], ["emulator"], ["q8_0", "q4_k", "int8_row"])])
def test_products(rows: int, device: str | None, form: packed.Format) -> None:
    a, weight, bias = draw(rows, 256), draw(64, 256), draw(64)
    matrix = packed.pack(weight, form)
    found = ops.matmul(a, matrix, bias=bias, epilogue="bias", device=device)
    expected = rounded(a, form == "int8_row").astype(np.float64) @ matrix.unpack().astype(np.float64).T + bias
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=5e-3)
    assert np.abs(expected - (a @ weight.T + bias)).max() > 5e-3  # which a product of the floats would fail
    np.testing.assert_allclose(packed.matmul(a, matrix, bias=bias, epilogue="bias", device=device), found, rtol=1e-4, atol=1e-4)


def test_swiglu_and_outputs() -> None:
    a, matrix = draw(12, 256), packed.pack(draw(64, 256), "q8_0")
    out = np.full((12, 32), np.nan, np.float32)
    assert packed.matmul(a, matrix, epilogue="swiglu", out=out) is out
    gate, factor = (sums := packed.matmul(a, matrix))[:, 0::2], sums[:, 1::2]
    np.testing.assert_allclose(out, gate / (1 + np.exp(-gate)) * factor, rtol=1e-4, atol=1e-4)


def test_rows_are_gathered_and_normed() -> None:
    table = packed.pack(draw(40, 256), "q6_k")
    indices = np.array([7, 0, 39], np.int32)
    out = np.empty((3, 256), np.float32)
    np.testing.assert_array_equal(ops.gather(table, indices, out=out), table.unpack()[indices])
    a, norm = draw(2, 256), draw(256)
    found = ops.normed_matmul(a, norm, table)
    expected = a / np.sqrt((a**2).mean(1, keepdims=True) + 1e-6) * norm @ table.unpack().T
    np.testing.assert_allclose(found, expected, atol=0.05 * np.abs(expected).max())


def test_quantized_rows() -> None:
    x = draw(5, 100)
    values, scales = packed.quantize(x, "q4_k")
    assert values.shape == (5, 256) and values.dtype == np.int8 and scales.shape == (8, 5)
    back = (values.reshape(5, 8, 32) * scales.T[:, :, None]).reshape(5, 256)
    np.testing.assert_allclose(back[:, :100], x, atol=1 / 250)
    assert not values[:, 100:].any()


MATRIX = packed.pack(np.ones((16, 64), np.float32), "q8_0")
BAD: list[tuple[Any, Any, str]] = [
    (lambda: packed.pack(draw(4, 4), "q7_k"), ValueError, "format: there is no packed format 'q7_k'"),  # type: ignore[arg-type]
    (lambda: packed.pack(draw(4, 4), 4), TypeError, "format"),  # type: ignore[arg-type]
    (lambda: packed.pack(draw(4), "q8_0"), ValueError, "weight: it has 1 dimensions"),
    (lambda: packed.pack([["x"]], "q8_0"), ValueError, "could not convert"),
    (lambda: packed.pack(np.array([[1, np.nan]]), "q8_0"), ValueError, r"weight: the value \[0, 1\] cannot be held in q8_0"),
    (lambda: packed.pack(np.full((2, 32), 1e30), "q4_0"), ValueError, r"weight: the value \[0, 0\]"),
    (lambda: packed.PackedMatrix(np.zeros(7, np.uint8), "q8_0", (4, 4)), ValueError, "data: a matrix of 4 by 4 in q8_0"),
    (lambda: packed.PackedMatrix(None, "q8_0", (4, 4)), ValueError, "data"),
    (lambda: ops.matmul(draw(2, 32), MATRIX), ValueError, r"b is \[16,64\]"),
    (lambda: ops.matmul(draw(20, 32), MATRIX, device="emulator"), ValueError, "a: it has 32 columns, but b has 64"),
    (lambda: packed.matmul(draw(2, 64), draw(16, 64)), TypeError, "b: ndarray"),  # type: ignore[arg-type]
    (lambda: packed.matmul([[1]], MATRIX), TypeError, "a: list"),
    (lambda: packed.matmul(draw(2, 64), MATRIX, epilogue="bias"), ValueError, "bias"),
    (lambda: ops.add(MATRIX, draw(16, 64), out=draw(16, 64)), ValueError, "a"),
    (lambda: ops.transpose(draw(64, 16), out=MATRIX), ValueError, "out: a packed matrix is only read"),
    (lambda: ops.matmul(draw(2, 64), MATRIX.with_data(np.zeros(MATRIX.data.size, np.int8))), ValueError, "b: its data"),
]


@pytest.mark.parametrize("call, raised, message", BAD)
def test_what_does_not_fit_is_refused(call: Any, raised: Any, message: str) -> None:
    with pytest.raises(raised, match=message):
        call()


class Spoiled:
    packed_format, shape, data = 7, "wide", None


def test_what_only_looks_packed_is_refused() -> None:
    with pytest.raises(TypeError, match="b: it is not a pascaline.packed.PackedMatrix"):
        ops.matmul(draw(2, 64), Spoiled(), out=draw(2, 64))
    matrix = packed.pack(draw(16, 64), "q8_0")
    matrix.shape = (2**40, 2**40)
    with pytest.raises(pascaline.ArgumentError, match="b: a packed matrix of 1099511627776 by"):
        ops.matmul(draw(2, 64), matrix, out=draw(2, 64))
    for shape in [(-1, 64), (2**31, 1)]:
        with pytest.raises(pascaline.ArgumentError, match="is not possible"):
            packed.PackedMatrix(np.zeros(0, np.uint8), "q8_0", shape)


def test_rows_of_a_packed_table_are_float32() -> None:
    weight = packed.pack(np.linspace(-1, 1, 8 * 64, dtype=np.float32).reshape(8, 64), "q8_0")
    indices = np.array([7, 0, 7], np.int32)
    found = ops.gather(weight, indices)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, weight.unpack()[indices])
    with pytest.raises(pascaline.ArgumentError, match="out: with stream"):
        ops.gather(weight, indices, stream=3)
