"""PyTorch's tensors in host memory, and on a GPU where there is one; skipped where PyTorch is not installed, which set-up
does not bring: its wheels are 330 MB and need 2 GB of CUDA's libraries."""

import pytest

torch = pytest.importorskip("torch")

import pascaline
from pascaline import ops, packed

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    torch.manual_seed(4)
    return str(request.param)


@pytest.mark.parametrize("rows", [1, 8, 33])
@pytest.mark.parametrize("storage, weight", [("float32", "float32"), ("float16", "float16"), ("float16", "bfloat16")])
def test_matmul(device: str, rows: int, storage: str, weight: str) -> None:
    a = torch.randn(rows, 64, device=device).to(getattr(torch, storage))
    b = torch.randn(48, 64, device=device).to(getattr(torch, weight))
    found = ops.matmul(a, b)
    assert found.dtype == a.dtype and found.device == a.device and found.shape == (rows, 48)
    expected = a.double() @ b.double().T
    assert (found.double() - expected).abs().max() < (1e-4 if storage == "float32" else 0.05)


def test_results_are_written_where_they_are_wanted(device: str) -> None:
    x, weight = torch.randn(5, 96, device=device), torch.randn(96, device=device)
    out = torch.full_like(x, float("nan"))
    address = out.data_ptr()
    assert ops.rmsnorm(x, weight, out=out) is out and out.data_ptr() == address
    torch.testing.assert_close(out, torch.nn.functional.rms_norm(x, (96,), weight, 1e-6))
    torch.testing.assert_close(ops.softmax(x), x.softmax(1))
    torch.testing.assert_close(ops.gelu_tanh(x), torch.nn.functional.gelu(x, approximate="tanh"))
    torch.testing.assert_close(ops.transpose(x), x.T.contiguous())


def test_attention(device: str) -> None:
    q, k, v = (torch.randn(7, heads, 64, device=device) for heads in (4, 2, 2))
    wide = [t.transpose(0, 1)[None] for t in (q, k, v)]
    expected = torch.nn.functional.scaled_dot_product_attention(*wide, is_causal=True, enable_gqa=True)[0].transpose(0, 1)
    torch.testing.assert_close(ops.attention_prefill(q, k, v), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", [2, 20])
def test_packed_weights(device: str, rows: int) -> None:
    a, b = torch.randn(rows, 256, device=device), torch.randn(64, 256)
    weight = packed.pack(b, "q8_0")
    on_device = weight.with_data(torch.from_numpy(weight.data).to(device))
    expected = a.double().cpu() @ torch.from_numpy(weight.unpack()).double().T
    assert (ops.matmul(a, on_device).cpu() - expected).abs().max() < 0.5  # rows were rounded to 127 steps


def test_work_of_a_stream_is_waited_for(device: str) -> None:
    x = torch.zeros(1024, 1024, device=device)
    for _ in range(50):
        x += 1  # on a GPU, still running when the next line is reached
    torch.testing.assert_close(ops.add(x, x), torch.full_like(x, 100))


def test_derivatives_are_not_cut_silently(device: str) -> None:
    x = torch.randn(4, 32, device=device, requires_grad=True)
    with pytest.raises(pascaline.ArgumentError, match="x: it requires a gradient"):
        ops.softmax(x)
    with torch.no_grad():
        torch.testing.assert_close(ops.softmax(x), x.softmax(1))
    torch.testing.assert_close(ops.softmax(x.detach()), x.softmax(1).detach())


def test_what_cannot_be_taken_says_why() -> None:
    for x, message in [(torch.zeros(4, 4, device="meta"), "x: Tensor does not give its memory away"),
                       (torch.zeros(4, 4, dtype=torch.complex64), "x: an array of torch.complex64"),
                       (torch.zeros(4, 4).to_sparse(), "x: "), (torch.zeros(4, 8)[:, ::2], "x: its elements do not lie"),
                       (torch.zeros(8, 4).T, "x: its elements do not lie"),
                       (torch.zeros(17)[1:].reshape(4, 4), "x is not aligned|x.*16")]:
        with pytest.raises((TypeError, ValueError), match=message):
            ops.softmax(x, out=torch.zeros(4, 4))


def test_several_devices_at_once_are_refused() -> None:
    if "cuda" not in DEVICES:
        pytest.skip("there is no GPU")
    with pytest.raises(pascaline.ArgumentError, match="b is on cpu, but a is on cuda:0"):
        ops.matmul(torch.zeros(4, 32, device="cuda"), torch.zeros(4, 32))
