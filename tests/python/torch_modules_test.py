"""Operators and modules for PyTorch, against PyTorch's own; skipped where it is not installed."""

import copy
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn
from torch.nn.utils import parametrize
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
    (pt.linear_swiglu, lambda x, w: functional.silu(x @ w[0::2].T) * (x @ w[1::2].T), [(2, 5, 32), (48, 32)], ()),
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


@pytest.mark.parametrize("which", range(len(OPERATORS)))
def test_derivatives_of_derivatives_forward_mode_and_transformations_are_pytorchs(which: int, device: str) -> None:
    operator, by_torch, shapes, others = OPERATORS[which]
    tensors = [draw(*shape, device=device) for shape in shapes]

    def penalty(function: Any) -> Any:
        given = [tensor.clone().requires_grad_() for tensor in tensors]
        found = torch.autograd.grad(function(*given, *others).pow(2).sum(), given, create_graph=True)
        return torch.autograd.grad(sum(one.pow(2).sum() for one in found) + given[0].sum(), given)

    def of_last(function: Any) -> Any:
        return lambda last: function(*tensors[:-1], last, *others)

    if by_torch.__name__ == "linear" or operator is not pt.attention:  # PyTorch's has no second one in host memory
        for one, other in zip(penalty(operator), penalty(by_torch)):
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pt.FallbackWarning)
            found, expected = (torch.func.jvp(of_last(function), (tensors[-1],), (tensors[-1],))[1]
                               for function in (operator, by_torch))
            assert expected.abs().max() > 0
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
            with torch.autograd.forward_ad.dual_level():
                dual = torch.autograd.forward_ad.make_dual(tensors[-1], tensors[-1])
                tangent = torch.autograd.forward_ad.unpack_dual(of_last(operator)(dual)).tangent
            torch.testing.assert_close(tangent, expected, rtol=1e-4, atol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pt.FallbackWarning)
        found, expected = (torch.func.grad(lambda last, run=of_last(function): run(last).sin().sum())(tensors[-1])
                           for function in (operator, by_torch))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert any("torch.func" in reason for _, reason in pt.stats().fallbacks)


@pytest.mark.parametrize("type", [torch.bfloat16, torch.float16])
def test_within_autocast_types_are_pytorchs(type: Any, device: str) -> None:
    model, plain = nn.Sequential(nn.Linear(32, 32), nn.RMSNorm(32, eps=1e-6)).to(device), None
    plain = copy.deepcopy(model)
    pt.optimize(model)
    x = draw(4, 32, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pt.FallbackWarning)
        with torch.autocast(device, dtype=type):
            found, expected = model(x), plain(x)
            compiled = torch.compile(model, backend="aot_eager", fullgraph=True)(x)
            by_operator = torch.ops.pascaline.linear(x.to(type), model[0].weight.to(type))
        assert found.dtype is expected.dtype is compiled.dtype and by_operator.dtype is type
        torch.testing.assert_close(found, expected)
        found.float().sum().backward()
    assert model[0].weight.grad.dtype is torch.float32
    assert pt.stats().fallbacks["linear", "within torch.autocast"] == 1


SDPA: list[tuple[list[tuple[int, ...]], dict[str, Any]]] = [
    ([(1, 4, 6, 16), (2, 4, 6, 16), (2, 4, 6, 16)], {}), ([(2, 4, 6, 16), (1, 4, 6, 16), (1, 4, 6, 16)], {}),
    ([(2, 4, 6, 16), (3, 4, 6, 16), (3, 4, 6, 16)], {}), ([(2, 4, 6, 16), (2, 1, 6, 16), (2, 1, 6, 16)], {}),
    ([(2, 4, 6, 16), (2, 2, 6, 16), (2, 2, 6, 16)], {}), ([(2, 4, 6, 16), (2, 3, 6, 16), (2, 3, 6, 16)], {"enable_gqa": True}),
    ([(6, 16)] * 3, {}), ([(16,)] * 3, {}), ([(4, 6, 16)] * 3, {"is_causal": True}), ([(1, 2, 4, 6, 16)] * 3, {}),
    ([(2, 4, 6, 16), (2, 4, 9, 16), (2, 4, 9, 16)], {"is_causal": True}), ([(2, 4, 6, 16), (2, 4, 6, 16), (2, 4, 6, 8)], {}),
    ([(2, 4, 6, 16)] * 3, {"scale": 0.5}), ([(2, 4, 6, 16)] * 3, {"scale": 0.25}), ([(2, 4, 6, 16)] * 3, {"dropout_p": 2.0}),
    ([(1, 2, 3, 257)] * 3, {}),
]


@pytest.mark.parametrize("which", range(len(SDPA)))
def test_attention_of_any_shapes_is_as_pytorchs_or_raises_as_it(which: int, device: str) -> None:
    shapes, named = SDPA[which]
    tensors = [draw(*shape, device=device) for shape in shapes]

    def call(function: Any) -> Any:
        try:
            return function(*tensors, **named)
        except RuntimeError as error:
            return str(error)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pt.FallbackWarning)
        found, expected = call(pt.scaled_dot_product_attention), call(functional.scaled_dot_product_attention)
    assert type(found) is type(expected)
    if not isinstance(expected, str):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_what_is_no_tensor_is_named() -> None:
    x, weight = draw(4, 32), draw(8, 32)
    for call in [lambda: pt.linear(None, weight), lambda: pt.linear(x.numpy(), weight), lambda: pt.linear([1.0], weight),
                 lambda: pt.linear(x, weight, "bias"), lambda: pt.rms_norm(x, None), lambda: pt.swiglu(x, 3)]:
        with pytest.raises((TypeError, RuntimeError), match="argument '(x|weight|bias|factor)'"):
            call()
    for query, key in [(None, x), (x.numpy(), x), (x, None)]:
        with pytest.warns(pt.FallbackWarning), pytest.raises(TypeError, match="query|key"):
            pt.reset_stats()
            pt.scaled_dot_product_attention(query, key, x)


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
    with pytest.warns(pt.FallbackWarning, match="there is a mask"):
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


class OneMoreRMSNorm(nn.Module):
    """As Gemma's, which adds 1 to the weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.zeros(64)), 1e-6

    def forward(self, x: Any) -> Any:
        return functional.rms_norm(x, (64,), 1 + self.weight, self.eps)


class OutsideRMSNorm(nn.RMSNorm):
    """With its epsilon outside of the root."""

    def forward(self, x: Any) -> Any:
        return x / (x.pow(2).mean(-1, keepdim=True).sqrt() + self.eps) * self.weight


class TwoRMSNorm(OneMoreRMSNorm):
    def forward(self, x: Any, gate: Any) -> Any:
        return super().forward(x) * gate


def test_optimize_leaves_what_computes_something_else_or_is_depended_upon() -> None:
    model = nn.ModuleDict({"more": OneMoreRMSNorm(), "two": TwoRMSNorm(), "outside": OutsideRMSNorm(64, eps=1e-6), "hooked": nn.RMSNorm(64, eps=1e-6),
                           "patched": nn.Linear(64, 64), "packed": nn.Linear(64, 64), "shared": nn.Linear(64, 64)})
    model["hooked"].register_forward_hook(lambda *_: None)
    model["patched"].forward = lambda x: x
    model["again"] = model["shared"]
    report = pt.optimize(model)
    assert report.replaced == [("packed", "Linear"), ("shared", "Linear"), ("again", "Linear")]
    assert model["again"] is model["shared"] and isinstance(model["again"], pt.Linear)
    kept = {name: reason for name, _, reason in report.kept}
    assert kept["hooked"] == "it has hooks" and "its forward is not" in kept["patched"]
    assert all("something else" in kept[name] for name in ["more", "two", "outside"])
    model["packed"].register_forward_hook(lambda *_: None)
    report = pt.optimize(model, quantize="q8_0")  # of what was replaced before, too
    assert report.replaced == [("shared", "Linear"), ("again", "Linear")] and model["again"] is model["shared"]
    assert ("packed", "Linear", "it has hooks") in report.kept
    decoder, x = Decoder(), draw(2, 5, 64)
    pt.optimize(decoder)
    expected = decoder(x).detach()
    assert len(pt.optimize(decoder, quantize="q8_0").replaced) == 7
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", pt.FallbackWarning)
        assert (decoder(x) - expected).abs().max() < 0.05 * expected.abs().max()


def test_optimize_refuses_what_does_not_fit() -> None:
    model = nn.Sequential(nn.Linear(64, 64))
    for call, raised, message in [(lambda: pt.optimize(3), TypeError, "model: int"),
                                  (lambda: pt.optimize(model, quantize="q9"), ValueError, "quantize: .*'q9'.*q8_0"),
                                  (lambda: pt.optimize(model, skip="0"), TypeError, "skip: str"),
                                  (lambda: pt.optimize(model, skip=0), TypeError, "skip: int"),
                                  (lambda: pt.optimize(model, fuse="no"), TypeError, "fuse: str"),
                                  (lambda: pt.optimize(model, skip=["1"]), ValueError, "skip: .* no module '1'")]:
        with pytest.raises(raised, match=message):
            call()
    assert type(model[0]) is nn.Linear
    report = pt.optimize(model[0])
    assert not report.replaced and report.kept[0][:2] == ("", "Linear")
    assert not pt.optimize(model, skip=(name for name in ["0"])).replaced and type(model[0]) is nn.Linear
    derived = nn.Sequential(parametrize.register_parametrization(nn.Linear(64, 64), "weight", nn.Identity()))
    assert [(name, reason[:20]) for name, _, reason in pt.optimize(derived).kept][0] == ("0", "its class is derived")
    script = torch.jit.script(nn.Sequential(nn.Linear(64, 64)))
    assert [name for name, _, _ in pt.optimize(script).kept] == ["0"] and script(draw(2, 64)).shape == (2, 64)
    with torch.device("meta"):
        empty = nn.Sequential(nn.Linear(64, 64), nn.RMSNorm(64, eps=1e-6))
    assert [reason for _, _, reason in pt.optimize(empty, quantize="q8_0").kept] == ["its weight is not there"] * 2


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
    with pytest.raises(pascaline.ArgumentError, match="x: linear_packed has no derivative"):
        torch.func.jvp(model, (x,), (x,))
    with pytest.raises(pascaline.ArgumentError, match="x: linear_packed has no derivative"), torch.autograd.forward_ad.dual_level():
        model(torch.autograd.forward_ad.make_dual(x, x))
    torch.testing.assert_close(torch.func.vmap(model)(x), found, rtol=1e-2, atol=1e-2)


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


# ---- Layers that are computed together ----


class GatedMLP(nn.Module):
    def __init__(self, bias: bool = False, act_fn: Any = None) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(64, 96, bias=bias), nn.Linear(64, 96, bias=bias)
        self.down_proj = nn.Linear(96, 64, bias=bias)
        self.act_fn = act_fn or nn.SiLU()

    def forward(self, x: Any) -> Any:
        """As in Transformers' models."""
        down_proj = self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))
        return down_proj


def unchanged(x: Any) -> Any:
    return x


class SelfAttention(nn.Module):
    def __init__(self, bias: bool = True) -> None:
        super().__init__()
        self.q_proj, self.o_proj = nn.Linear(64, 64, bias=bias), nn.Linear(64, 64)
        self.k_proj, self.v_proj = nn.Linear(64, 32, bias=bias), nn.Linear(64, 32, bias=bias)
        self.between: Callable[[Any], Any] = unchanged

    def forward(self, hidden_states: Any) -> Any:
        shape = (*hidden_states.shape[:-1], -1, 16)
        q = self.q_proj(hidden_states).view(shape).transpose(1, 2)
        hidden_states = self.between(hidden_states)
        k = self.k_proj(hidden_states).view(shape).transpose(1, 2)
        v = self.v_proj(hidden_states).view(shape).transpose(1, 2)
        found = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o_proj(found.transpose(1, 2).reshape(hidden_states.shape))


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.self_attn, self.mlp = SelfAttention(), GatedMLP()

    def forward(self, x: Any) -> Any:
        x = x + self.self_attn(x)
        return x + self.mlp(x)


TOGETHER = {"linear": 3, "linear_swiglu": 1}  # q, k and v; o; down
APART = {"linear": 7}


def calls_of(model: Any, x: Any) -> tuple[Any, dict[str, int]]:
    pt.reset_stats()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", pt.FallbackWarning)
        return model(x), dict(pt.stats().calls)


def test_layers_of_one_input_are_computed_together(device: str) -> None:
    model, plain = Decoder().to(device).eval(), Decoder().to(device).eval()
    plain.load_state_dict(model.state_dict())
    kept = {name: parameter for name, parameter in model.named_parameters()}
    report = pt.optimize(model)
    assert [(name, kind) for name, kind, _ in report.fused] == [("self_attn", "SelfAttention"), ("mlp", "GatedMLP")]
    assert isinstance(model.mlp, GatedMLP) and type(model.mlp).__name__ == "GatedMLP" and not pt.optimize(model).fused
    for rows in [(1, 1), (1, 7), (3, 5)]:
        x = draw(*rows, 64, device=device)
        found, calls = calls_of(model, x)
        torch.testing.assert_close(found, plain(x).detach(), rtol=1e-4, atol=1e-4)
        assert calls == TOGETHER
    with torch.inference_mode():  # where changes in place are not counted, so that only Transformers' classes are trusted
        pt.reset_stats()
        torch.testing.assert_close(model(x.clone()), plain(x), rtol=1e-4, atol=1e-4)
        assert pt.stats().calls == {"linear": 5, "linear_swiglu": 1}
    # The same parameters, each once in memory.
    assert all(parameter is kept[name] for name, parameter in model.named_parameters())
    for layers in [(model.mlp.gate_proj, model.mlp.up_proj), (model.self_attn.q_proj, model.self_attn.v_proj)]:
        first, last = (layer.weight.untyped_storage() for layer in layers)
        assert first.data_ptr() == last.data_ptr()
    assert model.mlp.gate_proj.weight.untyped_storage().nbytes() == 2 * 96 * 64 * 4
    assert model.mlp.up_proj.weight.data_ptr() == model.mlp.gate_proj.weight.data_ptr() + 64 * 4
    state = model.state_dict()
    assert list(state) == list(plain.state_dict()) and all(state[name].data_ptr() == kept[name].data_ptr() for name in state)


def test_weights_of_layers_together_can_be_loaded_moved_and_copied(device: str, tmp_path: Any) -> None:
    model, other, x = Decoder().to(device).eval(), Decoder().to(device).eval(), draw(2, 5, 64, device=device)
    pt.optimize(model)
    torch.save(model.state_dict(), tmp_path / "state.pt")
    again = Decoder().to(device).eval()
    again.load_state_dict(torch.load(tmp_path / "state.pt"))
    torch.testing.assert_close(again(x).detach(), calls_of(model, x)[0], rtol=1e-4, atol=1e-4)
    model.load_state_dict(other.state_dict())  # into the matrices
    expected = other(x).detach()
    torch.save(model, tmp_path / "model.pt")
    for one in [model, copy.deepcopy(model), torch.load(tmp_path / "model.pt", weights_only=False)]:
        found, calls = calls_of(one, x)
        assert calls == TOGETHER and isinstance(one.mlp, GatedMLP)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
        assert one.mlp.up_proj.weight.data_ptr() == one.mlp.gate_proj.weight.data_ptr() + 64 * 4
    model.half().float()  # two times other weights
    found, calls = calls_of(model, x)
    assert calls == TOGETHER
    torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-2)
    model.load_state_dict({name: value.clone() for name, value in other.state_dict().items()}, assign=True)
    with torch.no_grad(), pytest.warns(pt.FallbackWarning, match="gate_proj, up_proj were replaced; optimize again"):
        torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-4)
    assert calls_of(model, x)[1] == APART
    assert len(pt.optimize(model).fused) == 2 and calls_of(model, x)[1] == TOGETHER
    parametrize.register_parametrization(model.self_attn.k_proj, "weight", nn.Identity())
    pt.reset_stats()
    with torch.no_grad(), pytest.warns(pt.FallbackWarning, match="k_proj, v_proj were replaced"):
        torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-4)
    parametrize.remove_parametrizations(model.self_attn.k_proj, "weight")
    pt.separate(model)
    assert type(model.mlp) is GatedMLP and all(value.is_contiguous() for value in model.state_dict().values())
    found, calls = calls_of(model, x)
    assert calls == APART and model.mlp.up_proj.weight.untyped_storage().nbytes() == 96 * 64 * 4
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_no_result_of_an_input_that_changed_is_used(device: str) -> None:
    changes: list[Callable[[Any], Any]] = [lambda x: x.mul_(2), lambda x: x * 2, lambda x: x.view(x.shape) if x.add_(1) is x else x]
    for change in changes:
        plain, x = SelfAttention().to(device).eval(), draw(1, 6, 64, device=device)
        plain.between = change
        model = copy.deepcopy(plain)
        pt.optimize(model)
        pt.reset_stats()
        with torch.no_grad():
            with pytest.warns(pt.FallbackWarning, match="called with different tensors"):
                torch.testing.assert_close(model(x.clone()), plain(x.clone()), rtol=1e-4, atol=1e-4)
            assert pt.stats().calls == {"linear": 4} and pt._scope.held is None and pt._scope.attention is None
            torch.testing.assert_close(model(x.clone()), plain(x.clone()), rtol=1e-4, atol=1e-4)  # not together from now on
            assert pt.stats().calls == {"linear": 8}
    plain, x = SelfAttention().to(device).eval(), draw(1, 6, 64, device=device)
    model = copy.deepcopy(plain)
    pt.optimize(model)
    for one in (model, plain):  # a weight that changes on the way
        one.between = lambda x, one=one: one.v_proj.weight.mul_(2) is None or x
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", pt.FallbackWarning)
        torch.testing.assert_close(model(x), plain(x), rtol=1e-4, atol=1e-4)


def test_no_result_of_a_bias_that_changed_is_used(device: str) -> None:
    def add(layer: Any) -> None:
        layer.bias.add_(1)

    def replace(layer: Any) -> None:
        layer.bias = nn.Parameter(torch.ones_like(layer.bias))

    for change in (add, replace):
        plain, x = SelfAttention(bias=True).to(device).eval(), draw(1, 6, 64, device=device)
        model = copy.deepcopy(plain)
        assert pt.optimize(model).fused
        for one in (model, plain):
            one.between = lambda x, one=one: change(one.v_proj) is not None or x
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore", pt.FallbackWarning)
            torch.testing.assert_close(model(x), plain(x), rtol=1e-4, atol=1e-4)


def test_nothing_is_kept_of_a_forward_that_fails_and_layers_can_be_called_alone(device: str) -> None:
    model, x = SelfAttention().to(device).eval(), draw(1, 6, 64, device=device)
    pt.optimize(model)

    def fail(x: Any) -> Any:
        raise ArithmeticError

    model.between = fail
    with torch.no_grad(), pytest.raises(ArithmeticError):
        model(x)
    assert pt._scope.held is None and pt._scope.attention is None
    with torch.no_grad():
        for layer in (model.k_proj, model.q_proj):
            torch.testing.assert_close(layer(x), functional.linear(x, layer.weight, layer.bias), rtol=1e-4, atol=1e-4)
    model.between = unchanged
    assert calls_of(model, x)[1] == {"linear": 2}
    found: list[Any] = []
    expected = calls_of(model, x)[0]

    def one_thread() -> None:
        with torch.no_grad():
            found.extend(model(x) for _ in range(20))

    threads = [threading.Thread(target=one_thread) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 60
    for one in found:
        torch.testing.assert_close(one, expected, rtol=1e-5, atol=1e-5)


def test_what_does_not_fit_together_is_left_with_the_reason() -> None:
    class Clamped(GatedMLP):
        def forward(self, x: Any) -> Any:
            return self.down_proj(self.act_fn(self.gate_proj(x).clamp(max=1)) * self.up_proj(x))

    attention = [SelfAttention() for _ in range(3)]
    attention[0].k_proj = nn.Linear(64, 32, bias=False)
    attention[1].v_proj = nn.Linear(64, 32).bfloat16()
    attention[2].q_proj.register_forward_hook(lambda module, inputs, output: output * 2)
    model = nn.ModuleList([GatedMLP(bias=True), GatedMLP(act_fn=nn.GELU()), Clamped(), *attention, GatedMLP()])
    weights = model[6].gate_proj.weight
    model[6].up_proj.weight.data = weights.data.view(2, 48, 64)[:, :, :].reshape(96, 64)  # the same memory
    report = pt.optimize(model, skip=["6.down_proj"])
    assert not report.fused
    why = {name: reason.removeprefix("its layers are computed one by one: ")
           for name, _, reason in report.kept if "one by one" in reason}
    assert why == {
        "0": "they have a bias", "1": "its activation is not SiLU", "2": "its forward is another, or its source is not there",
        "3": "only some have a bias", "4": "v_proj is of class Linear, of PyTorch", "5": "q_proj has hooks",
        "6": "two weights are one"}
    assert type(model[0]) is GatedMLP and all(type(one) is SelfAttention for one in model[3:6])
    assert not pt.optimize(nn.ModuleList([Decoder()]), skip=["0.mlp", "0.self_attn"]).fused
    assert not pt.optimize(Decoder(), fuse=False).fused
    mixed = Decoder()
    assert [name for name, _, _ in pt.optimize(mixed, skip=["mlp.up_proj"]).fused] == ["self_attn"]


def test_layers_together_are_trained_by_pytorch(device: str) -> None:
    model, plain, x = Decoder().to(device), Decoder().to(device), draw(2, 5, 64, device=device)
    plain.load_state_dict(model.state_dict())
    pt.optimize(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pt.FallbackWarning)
        for _ in range(2):
            for one in (model, plain):
                one.zero_grad()
                one(x).square().mean().backward()
                torch.optim.SGD(one.parameters(), lr=0.1).step()
    for (name, parameter), expected in zip(model.named_parameters(), plain.parameters()):
        assert parameter.grad is not None, name
        torch.testing.assert_close(parameter.grad, expected.grad, rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(parameter, expected, rtol=1e-3, atol=1e-5)
    found, calls = calls_of(model, x)
    assert calls == TOGETHER
    torch.testing.assert_close(found, plain(x).detach(), rtol=1e-3, atol=1e-4)
    x.requires_grad_()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    (gradient,) = torch.autograd.grad(model(x).sum(), x)
    (expected,) = torch.autograd.grad(plain(x).sum(), x)
    torch.testing.assert_close(gradient, expected, rtol=1e-3, atol=1e-4)


class Scripted(nn.Module):
    """What TorchScript takes: a block of a model, with typed tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.last = nn.RMSNorm(64, eps=1e-6), nn.LayerNorm(64, eps=1e-6)
        self.up, self.gate, self.down = nn.Linear(64, 96), nn.Linear(64, 96, bias=False), nn.Linear(96, 64)
        self.act = pt.SwiGLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(x)
        heads = x.view(x.shape[0], x.shape[1], 4, 16).transpose(1, 2)
        x = pt.scaled_dot_product_attention(heads, heads, heads, is_causal=True).transpose(1, 2).reshape(x.shape)
        return self.last(x + self.down(self.act(self.gate(x), self.up(x))))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("format", [None, "q8_0"])
def test_torchscript_compiles_what_was_replaced(format: Any, device: str, tmp_path: Any) -> None:
    model, x = Scripted().to(device).eval(), draw(2, 5, 64, device=device)
    pt.optimize(model, quantize=format)
    script = torch.jit.script(model)
    torch.jit.save(script, tmp_path / "model.pt")
    with torch.no_grad():
        expected = model(x)
        traced = torch.jit.trace(model, x)
        for one in [script, torch.jit.load(tmp_path / "model.pt"), torch.jit.freeze(torch.jit.script(model)), traced]:
            pt.reset_stats()
            torch.testing.assert_close(one(x), expected, rtol=1e-4, atol=1e-4)
            assert pt.stats().calls == {"rms_norm": 1, "attention": 1, "layer_norm": 1, "swiglu": 1,
                                        "linear" if format is None else "linear_packed": 3}
    if format is None:
        script(x).square().sum().backward()
        found = model.up.weight.grad.clone()
        model.zero_grad()
        model(x).square().sum().backward()
        torch.testing.assert_close(found, model.up.weight.grad, rtol=1e-4, atol=1e-4)
    graph = torch.fx.symbolic_trace(nn.Sequential(model.norm, model.up, model.last.__class__(96, 1e-6).to(device)))
    assert len([node for node in graph.graph.nodes if "pascaline" in str(node.target)]) == 3


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_torchscript_says_what_to_do_about_layers_together(device: str) -> None:
    model = Decoder().to(device).eval()
    pt.optimize(model)
    with pytest.raises(pascaline.ArgumentError, match=r"TorchScript .*separate\(model\) before .*fuse=False"):
        torch.jit.script(model)
    with torch.no_grad():
        x, y = draw(2, 5, 64, device=device), draw(2, 5, 64, device=device)
        traced = torch.jit.trace(model, x)
        torch.testing.assert_close(traced(y), model(y), rtol=1e-4, atol=1e-4)


def test_layers_together_are_compiled_one_by_one(device: str) -> None:
    model, x = Decoder().to(device).eval(), draw(2, 5, 64, device=device)
    pt.optimize(model)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", pt.FallbackWarning)
        expected = model(x)
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(compiled(x), expected, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(torch.export.export(model, (x,)).module()(x), expected, rtol=1e-4, atol=1e-4)


def test_a_text_model_of_transformers(device: str) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.Qwen3VLTextConfig(
        hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=32,
        vocab_size=300, rope_parameters={"rope_type": "default", "rope_theta": 1e6, "mrope_section": [8, 4, 4]})
    config._attn_implementation = "sdpa"
    from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLTextModel
    model = Qwen3VLTextModel(config).to(device).float().eval()
    plain = copy.deepcopy(model)
    plain.config = copy.deepcopy(config)
    for layer in plain.layers:
        layer.self_attn.config = plain.config
    ids = torch.randint(0, 300, (1, 24), device=device)
    report = pt.optimize(model)
    assert [what.split()[0] for _, _, what in report.fused] == ["q_proj,", "attention", "gate_proj,", "q_proj,", "gate_proj,"]
    assert config._attn_implementation == "pascaline" and plain.config._attn_implementation == "sdpa"
    pt.reset_stats()
    for mode in (torch.no_grad, torch.inference_mode):
        with mode(), warnings.catch_warnings():
            warnings.simplefilter("error", pt.FallbackWarning)
            caches = transformers.DynamicCache(), transformers.DynamicCache()
            for part in (ids[:, :16], ids[:, 16:17], ids[:, 17:]):  # a prompt, a token, more of them: with a mask
                found, expected = (one(input_ids=part, past_key_values=cache, use_cache=True).last_hidden_state
                                   for one, cache in zip((model, plain), caches))
                torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    counts = pt.stats()
    assert counts.calls["linear"] == 2 * 3 * 2 * 3 and counts.calls["linear_swiglu"] == 2 * 3 * 2
    assert counts.calls["attention"] == 12 and sum(counts.fallbacks.values()) == 8  # prompts are by the kernels
    kept = transformers.AttentionInterface._global_mapping.pop("pascaline")  # as in another process
    again = copy.deepcopy(model)
    assert transformers.AttentionInterface._global_mapping["pascaline"] is kept
    with torch.no_grad():
        torch.testing.assert_close(again(input_ids=ids).last_hidden_state, model(input_ids=ids).last_hidden_state)
    model.train()
    model(input_ids=ids).last_hidden_state.sum().backward()
    plain.train()(input_ids=ids).last_hidden_state.sum().backward()
    for parameter, expected in zip(model.parameters(), plain.parameters()):
        torch.testing.assert_close(parameter.grad, expected.grad, rtol=1e-2, atol=1e-2)
    pt.separate(model)
    assert config._attn_implementation == "sdpa"


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
