"""Operators and modules for PyTorch, against PyTorch's own; skipped where it is not installed."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn
from torch.nn import functional

import pascaline
from pascaline import packed
from pascaline import torch as pt

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    torch.manual_seed(5)
    pt.reset_stats()
    return str(request.param)


def draw(*shape: int, device: str = "cpu") -> Any:
    return torch.randn(*shape, device=device)


# Operator, PyTorch's function, shapes of its tensors, further arguments.
OPERATORS: list[tuple[Any, Callable[..., Any], list[tuple[int, ...]], tuple[Any, ...]]] = [
    (pt.linear, functional.linear, [(2, 3, 32), (48, 32), (48,)], ()),
    (pt.linear, functional.linear, [(20, 32), (48, 32)], ()),
    (pt.rms_norm, lambda x, w, e: functional.rms_norm(x, (64,), w, e), [(2, 5, 64), (64,)], (1e-5,)),
    (pt.layer_norm, lambda x, w, b, e: functional.layer_norm(x, (64,), w, b, e), [(5, 64), (64,), (64,)], (1e-6,)),
    (pt.swiglu, lambda g, f: functional.silu(g) * f, [(2, 7, 32), (2, 7, 32)], ()),
    (pt.attention, lambda q, k, v, c: functional.scaled_dot_product_attention(q, k, v, is_causal=c),
     [(2, 3, 9, 16)] * 3, (True,)),
    (pt.attention, lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, enable_gqa=True),
     [(1, 4, 9, 16), (1, 2, 12, 16), (1, 2, 12, 16)], ()),
]


@pytest.mark.parametrize("which", range(len(OPERATORS)))
def test_an_operator_computes_what_pytorch_does(which: int, device: str) -> None:
    operator, by_torch, shapes, others = OPERATORS[which]
    tensors = [draw(*shape, device=device) for shape in shapes]
    with warnings.catch_warnings():
        warnings.simplefilter("error", pt.FallbackWarning)
        torch.testing.assert_close(operator(*tensors, *others), by_torch(*tensors, *others), rtol=1e-4, atol=1e-4)
    assert not pt.stats().fallbacks and sum(pt.stats().calls.values()) == 1
    if device == "cpu":
        torch.library.opcheck(getattr(torch.ops.pascaline, operator.__name__).default, (*tensors, *others))  # fake kernel, strides, aliases


@pytest.mark.parametrize("which", range(len(OPERATORS)))
def test_derivatives_are_pytorchs(which: int, device: str) -> None:
    operator, by_torch, shapes, others = OPERATORS[which]
    tensors = [draw(*shape, device=device).requires_grad_() for shape in shapes]
    gradient = draw(*by_torch(*tensors, *others).shape, device=device)
    found = torch.autograd.grad(operator(*tensors, *others), tensors, gradient)
    expected = torch.autograd.grad(by_torch(*tensors, *others), tensors, gradient)
    for one, other in zip(found, expected):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    alone = torch.autograd.grad(operator(*[t.detach() for t in tensors[:-1]], tensors[-1], *others), tensors[-1], gradient)
    torch.testing.assert_close(alone[0], expected[-1], rtol=1e-4, atol=1e-4)


def test_what_kernels_cannot_compute_is_computed_by_pytorch_and_told_once(device: str) -> None:
    x, weight = draw(4, 32, device=device).double(), draw(8, 32, device=device).double()
    with pytest.warns(pt.FallbackWarning, match="pascaline::linear is computed by PyTorch: .*float64"):
        torch.testing.assert_close(pt.linear(x, weight), x @ weight.T)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pt.linear(x, weight)
    counts = pt.stats()
    assert counts.calls["linear"] == 2 and list(counts.fallbacks.values()) == [2]
    with pytest.warns(pt.FallbackWarning, match="epsilon is 1e-6, not 1e-05"):
        pt.layer_norm(x.float(), draw(32, device=device), draw(32, device=device), 1e-5)
    q = draw(1, 2, 5, 16, device=device)
    mask = torch.ones(5, 5, dtype=torch.bool, device=device).tril()
    torch.testing.assert_close(pt.scaled_dot_product_attention(q, q, q, mask),
                               functional.scaled_dot_product_attention(q, q, q, mask))
    assert pt.stats().fallbacks["attention", "there is a mask"] == 1
    torch.testing.assert_close(pt.scaled_dot_product_attention(q, q, q, is_causal=True),
                               functional.scaled_dot_product_attention(q, q, q, mask), rtol=1e-4, atol=1e-4)
    with pytest.raises(RuntimeError):
        pt.linear(draw(4, 31, device=device), draw(8, 32, device=device))  # PyTorch's own exception, as without it


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(64, eps=1e-6)
        self.norms = nn.ModuleList([nn.LayerNorm(64, eps=1e-6), nn.LayerNorm(64)])
        self.up, self.gate, self.down = nn.Linear(64, 96), nn.Linear(64, 96, bias=False), nn.Linear(96, 64)
        self.head = nn.Linear(64, 8).bfloat16()
        self.act = nn.SiLU()

    def forward(self, x: Any) -> Any:
        x = self.norms[1](self.norms[0](self.norm(x)))
        return self.down(self.act(self.gate(x)) * self.up(x))


def test_optimize_replaces_what_it_says(device: str) -> None:
    model = Block().to(device).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.2)
    x = draw(2, 5, 64, device=device)
    expected, state = model(x), {name: value.data_ptr() for name, value in model.state_dict().items()}
    report = pt.optimize(model, skip=["up"])
    assert sorted(report.replaced) == [("down", "Linear"), ("gate", "Linear"), ("norm", "RMSNorm"), ("norms.0", "LayerNorm")]
    kept = {name: reason for name, _, reason in report.kept}
    assert set(kept) == {"up", "norms.1", "head", "act"}
    assert "1e-05" in kept["norms.1"] and "bfloat16" in kept["head"] and kept["up"] == "it is to be left"
    assert {name: value.data_ptr() for name, value in model.state_dict().items()} == state  # no copies
    torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-4)
    assert pt.stats().calls == {"rms_norm": 1, "layer_norm": 1, "linear": 2} and not pt.stats().fallbacks
    assert not pt.optimize(model, skip=["up"]).replaced


def test_compile_and_export_see_the_operators(device: str) -> None:
    model = Block().to(device).eval()
    x = draw(2, 5, 64, device=device)
    pt.optimize(model)
    with torch.no_grad():
        expected = model(x)
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(compiled(x), expected, rtol=1e-4, atol=1e-4)
        program = torch.export.export(model, (x,))
    assert "pascaline.linear" in str(program.graph) and "pascaline.rms_norm" in str(program.graph)
    torch.testing.assert_close(program.module()(x), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("form", ["q8_0", "q4_k"])
@pytest.mark.parametrize("rows", [3, 20])
def test_packed_layers(form: packed.Format, rows: int, device: str) -> None:
    layer = nn.Linear(256, 64).to(device)
    model = nn.Sequential(layer)
    assert pt.optimize(model, quantize=form).replaced == [("0", "Linear")]
    x = draw(rows, 256, device=device)
    weight = torch.from_numpy(packed.pack(layer.weight.detach().cpu().numpy(), form).unpack()).to(device)
    with torch.no_grad():
        found, expected = model(x), functional.linear(x, weight, layer.bias)
    assert (found - expected).abs().max() < 0.03 * expected.abs().max() and found.shape == (rows, 64)
    assert form in repr(model) and "0.data" in model.state_dict()
    with pytest.raises(pascaline.ArgumentError):
        model(x.double())


def test_a_small_model_of_transformers_style() -> None:
    class ThirdPartyRMSNorm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.variance_epsilon = nn.Parameter(torch.ones(32)), 1e-6

        def forward(self, x: Any) -> Any:
            return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))

    model = nn.Sequential(ThirdPartyRMSNorm(), nn.Linear(32, 32))
    x = torch.from_numpy(np.linspace(-1, 1, 96, dtype=np.float32).reshape(3, 32))
    expected = model(x)
    assert len(pt.optimize(model).replaced) == 2
    torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-4)
    model(x).sum().backward()
    assert model[0].weight.grad is not None and model[1].weight.grad.abs().sum() > 0


def test_the_shapes_of_a_model_are_captured() -> None:
    model = nn.Sequential(nn.Linear(64, 96), nn.Linear(96, 64))
    pt.optimize(model)
    with pascaline.capture() as shapes:
        model(draw(20, 64))
        model(draw(20, 64))
    assert [(problem["kernel"], problem["dimensions"]["N"], problem["count"]) for problem in shapes.problems] == [
        ("matmul", 96, 2), ("matmul", 64, 2)]


@pytest.mark.parametrize("shape", [(64,), (3, 64), (2, 3, 64), (2, 1, 3, 64), (2, 1, 2, 3, 64), (0, 64)])
def test_any_number_of_dimensions(shape: tuple[int, ...], device: str) -> None:
    x, weight, norm = draw(*shape, device=device), draw(48, 64, device=device), draw(64, device=device)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", pt.FallbackWarning)
        for given in [x, x.transpose(0, -2) if x.dim() > 2 else x]:
            torch.testing.assert_close(pt.linear(given, weight), functional.linear(given, weight), rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(pt.rms_norm(given, norm), functional.rms_norm(given, (64,), norm, 1e-6), rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(pt.swiglu(given, given), functional.silu(given) * given, rtol=1e-4, atol=1e-4)


def test_plain_calls_do_not_go_through_pytorchs_dispatcher(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    through = pt._linear
    monkeypatch.setattr(pt, "_linear", lambda *tensors: seen.append("dispatcher") or through(*tensors))
    x, weight = draw(4, 32, device=device), draw(8, 32, device=device)
    layer = nn.Linear(32, 8).to(device)
    pt.optimize(model := nn.Sequential(layer))
    pt.linear(x, weight)
    with torch.no_grad():
        model(x)
    assert not seen and pt.stats().calls["linear"] == 2
    model(x).sum().backward()
    assert seen == ["dispatcher"] and model[0].weight.grad is not None
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx
    with FakeTensorMode() as mode:
        fake = pt.linear(mode.from_tensor(x), mode.from_tensor(weight))
        assert fake.shape == (4, 8) and type(fake).__name__ == "FakeTensor"
    with torch.no_grad():
        assert "pascaline.linear" in str(make_fx(lambda a: pt.linear(a, weight))(x).graph)
    assert len(seen) == 3
    plain: list[bool] = []
    torch.func.vmap(lambda row: plain.append(pt._is_plain(row)) or row)(x)
    assert plain == [False]


gpu = pytest.mark.skipif("cuda" not in DEVICES, reason="there is no GPU")


@gpu
def test_modules_are_captured_in_a_graph() -> None:
    torch.manual_seed(5)
    model = nn.Sequential(nn.RMSNorm(256, eps=1e-6), nn.Linear(256, 512), nn.Linear(512, 256, bias=False)).cuda().eval()
    x = draw(32, 256, device="cuda")
    pt.optimize(model)
    pt.reset_stats()
    with torch.no_grad():
        model(x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = model(x)
        for _ in range(3):
            x.copy_(draw(32, 256, device="cuda"))
            graph.replay()
            torch.cuda.synchronize()
            torch.testing.assert_close(out, model(x))
    assert not pt.stats().fallbacks


@gpu
def test_of_shapes_that_were_never_called_pytorchs_function_is_captured() -> None:
    pt.reset_stats()
    x, weight = draw(5, 160, device="cuda"), draw(48, 160, device="cuda")
    with torch.no_grad():
        functional.linear(x, weight)  # cuBLAS, too, must have begun
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with pytest.warns(pt.FallbackWarning, match="before the capture"), torch.cuda.graph(graph):
            out = pt.linear(x, weight)
        x.copy_(draw(5, 160, device="cuda"))
        graph.replay()
        torch.cuda.synchronize()
        torch.testing.assert_close(out, functional.linear(x, weight), rtol=1e-4, atol=1e-4)
    assert pt.stats().calls["linear"] == 1 and sum(pt.stats().fallbacks.values()) == 1


@gpu
def test_an_operator_returns_before_what_was_queued_is_done() -> None:
    x, weight = draw(8, 64, device="cuda"), draw(48, 64, device="cuda")
    with torch.no_grad():
        expected = pt.linear(x, weight)
        torch.cuda._sleep(1)
        torch.cuda.synchronize()
        torch.cuda._sleep(400_000_000)
        found = pt.linear(x, weight)
        assert not torch.cuda.current_stream().record_event().query()
        torch.testing.assert_close(found, expected)
