"""PyTorch's tensors in host memory, and on a GPU where there is one; skipped where PyTorch is not installed, which set-up
does not bring: its wheels are 330 MB and need 2 GB of CUDA's libraries."""

import threading
from typing import Any

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


def test_streams_are_of_gpus_only() -> None:
    x = torch.zeros(4, 32)
    with pytest.raises(pascaline.ArgumentError, match="stream: the arrays are in host memory"):
        ops.softmax(x, out=torch.zeros(4, 32), stream=1)
    with pytest.raises(pascaline.ArgumentError, match="out: with stream, pass an array"):
        ops.softmax(x, stream=1)


# ---- On a GPU: PyTorch's streams and graphs ----

gpu = pytest.mark.skipif("cuda" not in DEVICES, reason="there is no GPU")
LONG = 400_000_000  # cycles: 0.2 s at 2 GHz


def cuda(*shape: int) -> Any:
    return torch.randn(*shape, device="cuda")


@gpu
def test_a_call_goes_to_the_current_stream_and_waits_for_nothing() -> None:
    x, out = torch.zeros(64, 64, device="cuda"), torch.zeros(64, 64, device="cuda")
    ops.add(x.fill_(0), x, out=out)
    for stream in [torch.cuda.Stream(), torch.cuda.default_stream()]:
        assert out.zero_().sum().item() == 0  # and loads what is used below: that might wait
        torch.cuda._sleep(1)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(LONG)
            x.fill_(3)
            ops.add(x, x, out=out)
            assert not stream.record_event().query()  # what was before it still runs
        if stream != torch.cuda.default_stream():
            assert torch.cuda.default_stream().query()
            assert out.sum().item() == 0  # the default stream need not wait for it
        stream.synchronize()
        assert (out == 6).all()
        x.zero_()


@gpu
def test_a_stream_can_be_named() -> None:
    x, out, stream = cuda(64, 64), torch.zeros(64, 64, device="cuda"), torch.cuda.Stream()
    ops.gelu_tanh(x, out=out)
    assert out.zero_().abs().sum().item() == 0
    torch.cuda._sleep(1)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(LONG)
    for one in [stream, stream.cuda_stream]:
        ops.gelu_tanh(x, out=out, stream=one)
    assert out.abs().sum().item() == 0
    stream.synchronize()
    torch.testing.assert_close(out, torch.nn.functional.gelu(x, approximate="tanh"))


@gpu
def test_a_thread_without_a_context_may_call() -> None:
    x, found = cuda(8, 32), []
    thread = threading.Thread(target=lambda: found.append(ops.softmax(x)))
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    torch.testing.assert_close(found[0], x.softmax(1))


@gpu
def test_no_call_leaves_memory_behind() -> None:
    x, weight, out = cuda(8, 64), cuda(48, 64), torch.empty(8, 48, device="cuda")
    ops.matmul(x, weight, out=out)
    held = torch.cuda.memory_allocated()
    for _ in range(10):
        ops.matmul(x, weight, out=out)
    assert torch.cuda.memory_allocated() == held


@gpu
def test_a_captured_graph_computes_on_new_numbers() -> None:
    x, weight, norm = cuda(64, 256), cuda(256, 256), cuda(256)
    normed, product = torch.empty(64, 256, device="cuda"), torch.empty(64, 256, device="cuda")

    def step() -> None:
        ops.rmsnorm(x, norm, out=normed)
        ops.matmul(normed, weight, out=product)

    step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for _ in range(3):
        x.copy_(cuda(64, 256))
        product.zero_()
        graph.replay()
        torch.cuda.synchronize()
        replayed = product.clone()
        step()
        torch.testing.assert_close(product, replayed)
        expected = torch.nn.functional.rms_norm(x, (256,), norm, 1e-6).double() @ weight.double().T
        assert (replayed.double() - expected).abs().max() < 1e-2


@gpu
def test_a_capture_of_what_was_never_called_says_so_and_leaves_all_usable() -> None:
    x, weight, out = cuda(3, 96), cuda(112, 96), torch.empty(3, 112, device="cuda")
    with pytest.raises(pascaline.Error, match="matmul: it was not called with these shapes .* before the capture"):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            ops.matmul(x, weight, out=out)
    ops.matmul(x, weight, out=out)
    assert (out.double() - x.double() @ weight.double().T).abs().max() < 1e-3
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ops.matmul(x, weight, out=out)
    out.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert (out.double() - x.double() @ weight.double().T).abs().max() < 1e-3


@gpu
def test_calls_on_several_streams_do_not_spoil_each_others_scratch() -> None:
    queries = [cuda(16, 128) for _ in range(4)]
    k, v = cuda(4096, 8, 128), cuda(4096, 8, 128)
    length = torch.tensor([4096], dtype=torch.int32, device="cuda")
    expected = [ops.attention_decode(q, k, v, length).clone() for q in queries]
    streams = [torch.cuda.Stream() for _ in queries]
    outs = [torch.zeros_like(q) for q in queries]
    torch.cuda.synchronize()
    for _ in range(50):
        for q, out, stream in zip(queries, outs, streams):
            with torch.cuda.stream(stream):
                ops.attention_decode(q, k, v, length, out=out)
    torch.cuda.synchronize()
    for out, one in zip(outs, expected):
        torch.testing.assert_close(out, one)
