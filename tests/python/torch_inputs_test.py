"""Tensors that are not plain values in memory: negated views, sparse, nested and fake ones, classes of others."""

import pathlib
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn
from torch.nn import functional
from torch.utils import _pytree as pytree

import pascaline
from pascaline import ops, packed
from pascaline import torch as pt

SAXPY = pathlib.Path(__file__).parents[2] / "examples" / "own_kernel" / "saxpy.cu"


@pytest.fixture(autouse=True)
def counted_from_zero() -> None:
    torch.manual_seed(6)
    pt.reset_stats()


def negated(*shape: int) -> Any:
    return torch._neg_view(torch.randn(*shape))


class Own(torch.Tensor):
    """A class without anything of its own."""


def test_a_negated_view_is_refused() -> None:
    x = torch.randn(4, 32)
    one = torch.randn(1, 1, dtype=torch.complex64).conj().imag  # as users come by one
    assert one.is_neg() and one.is_contiguous()
    for call, name in [(lambda: ops.add(one, one), "a"), (lambda: ops.softmax(negated(4, 32)), "x"),
                       (lambda: ops.softmax(x, out=negated(4, 32)), "out"), (lambda: ops.matmul(x, negated(8, 32)), "b"),
                       (lambda: ops.rmsnorm(x, negated(32)), "weight"), (lambda: ops.softmax(negated(4, 32).as_subclass(Own)), "x"),
                       (lambda: ops.softmax(nn.Parameter(negated(4, 32), requires_grad=False)), "x"),
                       (lambda: packed.pack(negated(8, 32), "q8_0"), "weight")]:
        with pytest.raises(pascaline.ArgumentError, match=f"^{name}: .*(resolve_neg|negative bit)"):
            call()
    torch.testing.assert_close(ops.add(one.resolve_neg(), one.resolve_neg()), 2 * one)
    with pytest.raises(TypeError, match="^x: .*(complex64|conjugate bit)"):
        ops.softmax(torch.randn(4, 4, dtype=torch.complex64).conj(), out=torch.zeros(4, 4))


def test_a_class_of_ones_own_is_read_as_pytorchs() -> None:
    x = torch.randn(4, 32, requires_grad=True).as_subclass(Own)
    with pytest.raises(pascaline.ArgumentError, match="^x: it requires a gradient"):
        ops.softmax(x)
    with torch.no_grad():
        found, out = ops.softmax(x), torch.empty(4, 32).as_subclass(Own)
        assert type(found) is Own and ops.softmax(x, out=out) is out
        for one in (found, out):
            torch.testing.assert_close(one.as_subclass(torch.Tensor), x.as_subclass(torch.Tensor).softmax(1))


# An operator, PyTorch's function and the shapes of its tensors.
OPERATORS: list[tuple[Any, Callable[..., Any], list[tuple[int, ...]]]] = [
    (pt.linear, functional.linear, [(4, 32), (8, 32), (8,)]),
    (pt.linear_swiglu, lambda x, w: functional.silu(x @ w[0::2].T) * (x @ w[1::2].T), [(4, 32), (8, 32)]),
    (pt.rms_norm, lambda x, w: functional.rms_norm(x, (32,), w, 1e-6), [(2, 4, 32), (32,)]),
    (pt.layer_norm, lambda x, w, b: functional.layer_norm(x, (32,), w, b, 1e-6), [(4, 32), (32,), (32,)]),
    (pt.swiglu, lambda g, f: functional.silu(g) * f, [(4, 32), (4, 32)]),
    (pt.attention, functional.scaled_dot_product_attention, [(1, 2, 6, 16)] * 3),
]


@pytest.mark.parametrize("which", range(len(OPERATORS)))
def test_operators_compute_negated_views_by_the_kernels(which: int) -> None:
    operator, by_torch, shapes = OPERATORS[which]
    tensors = [torch.randn(*shape) for shape in shapes]
    with warnings.catch_warnings():
        warnings.simplefilter("error", pt.FallbackWarning)
        for i, shape in enumerate(shapes):
            given = [negated(*shape) if i == at else tensor for at, tensor in enumerate(tensors)]
            torch.testing.assert_close(operator(*given), by_torch(*given), rtol=1e-4, atol=1e-4)
            again = getattr(torch.ops.pascaline, operator.__name__)(*given)
            torch.testing.assert_close(again, by_torch(*given), rtol=1e-4, atol=1e-4)
    assert not pt.stats().fallbacks and set(pt.stats().calls.values()) == {2 * len(shapes)}


def test_packed_layers_take_negated_views() -> None:
    layer = nn.Linear(32, 16)
    layer.weight = nn.Parameter(negated(16, 32))
    layer.bias = nn.Parameter(negated(16))
    x = negated(5, 32)
    with torch.no_grad():
        expected = layer(x)
        assert (pt.PackedLinear(layer, "q8_0")(x) - expected).abs().max() < 0.05 * expected.abs().max()


def sparse() -> Any:
    return torch.randn(4, 32).relu().to_sparse()


def test_sparse_and_nested_tensors_are_computed_by_pytorch() -> None:
    weight, norm = torch.randn(8, 32), torch.randn(32)
    for x in (sparse(), sparse().to_sparse_csr()):
        with pytest.warns(pt.FallbackWarning, match="sparse or nested"):
            pt.reset_stats()
            torch.testing.assert_close(pt.linear(x, weight), functional.linear(x, weight))
    pieces = [torch.randn(3, 32), torch.randn(5, 32)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for layout in (torch.jagged, torch.strided):
            x = torch.nested.nested_tensor(pieces, layout=layout)
            for found in (pt.linear(x, weight), pt.linear(x.clone().requires_grad_(), weight)):
                for one, piece in zip(found.unbind(), pieces):
                    torch.testing.assert_close(one, functional.linear(piece, weight))
            for one, piece in zip(pt.layer_norm(x, norm, norm).unbind(), pieces):
                torch.testing.assert_close(one, functional.layer_norm(piece, (32,), norm, norm, 1e-6), rtol=1e-4, atol=1e-4)
    data = torch.from_numpy(packed.pack(weight, "q8_0").data)
    for x in (sparse(), torch.nested.nested_tensor(pieces, layout=torch.jagged)):
        with pytest.raises(pascaline.ArgumentError, match="^x: the tensor is sparse or nested"):
            pt.linear_packed(x, data, "q8_0", 8, 32)
    for x in (torch.nested.nested_tensor(pieces), torch.nested.nested_tensor(pieces, layout=torch.jagged), sparse()):
        with pytest.raises(TypeError, match="^(x|out): "):
            ops.softmax(x)


class Logged(torch.Tensor):
    """A tensor that knows PyTorch's operators only, as DTensor does."""

    held: Any

    @staticmethod
    def __new__(cls: Any, held: Any) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype)

    def __init__(self, held: Any) -> None:
        self.held = held

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        assert function.namespace == "aten"
        plain = pytree.tree_map_only(Logged, lambda tensor: tensor.held, (arguments, named or {}))
        return pytree.tree_map_only(torch.Tensor, Logged, function(*plain[0], **plain[1]))


def test_classes_that_know_pytorchs_operators_only_get_these() -> None:
    x, weight = torch.randn(4, 32), torch.randn(8, 32)
    with pytest.warns(pt.FallbackWarning, match="__torch_dispatch__"):
        found = pt.linear(Logged(x), Logged(weight))
    torch.testing.assert_close(found.held, functional.linear(x, weight))
    with pytest.raises(pascaline.ArgumentError, match="^x: it has no memory"):
        ops.softmax(Logged(x), out=x)


def test_tensors_without_memory_are_refused(tmp_path: Any) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.empty(64)
    gone = torch.ones(64)
    gone.untyped_storage().resize_(0)
    kernel = pascaline.Kernel(SAXPY, db=tmp_path / "own.db")
    assert kernel.winners() == []  # of a database that is not there yet
    x = torch.ones(64)
    for tensor in (fake, gone, torch._efficientzerotensor(64)):
        with pytest.raises(pascaline.ArgumentError, match="^x: it has no memory"):
            kernel.launch(tensor, x, torch.zeros(64), N=64)
        with pytest.raises(pascaline.ArgumentError, match="^out: it has no memory"):
            kernel.run(x, x, tensor, N=64, device="emulator")
        with pytest.raises(pascaline.ArgumentError, match="^a: it has no memory"):
            ops.add(tensor, x, out=torch.zeros(64))


def test_pytorch_is_told_of_what_is_written(tmp_path: Any) -> None:
    factor, held, ones = torch.randn(4, 16, requires_grad=True), torch.randn(4, 16), torch.ones(4, 16)
    product = (factor * held).sum()
    ops.add(ones, ones, out=held)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()
    kernel = pascaline.Kernel(SAXPY, db=tmp_path / "own.db")
    x, out = torch.ones(64), torch.zeros(64).as_subclass(Own)
    for run in (lambda: kernel.launch(x, x, out, N=64), lambda: kernel.run(x, x, out, N=64, device="emulator")):
        before = out._version, x._version
        run()
        assert (out._version > before[0], x._version) == (True, before[1])
    with torch.inference_mode():
        y = torch.ones(4, 16)
        assert (ops.add(y, y, out=y) == 2).all()


def test_types_that_pytorch_does_not_mix_are_refused_as_by_it() -> None:
    x, weight = torch.randn(4, 32), torch.randn(8, 32)
    for kind in (torch.complex64, torch.float64, torch.bool):
        with pytest.warns(pt.FallbackWarning, match="a weight or bias is"), pytest.raises(RuntimeError):
            pt.reset_stats()
            pt.linear(x, weight, torch.ones(8).to(kind))
    data = torch.from_numpy(packed.pack(weight, "q8_0").data)
    with pytest.raises(pascaline.ArgumentError, match="^bias: .*complex64"):
        pt.linear_packed(x, data, "q8_0", 8, 32, torch.ones(8, dtype=torch.complex64))
    with pytest.raises(TypeError, match="argument 'x' is ndarray, not a Tensor"):
        pt.linear(x.numpy(), weight)
    with pytest.warns(pt.FallbackWarning, match="K is 0"):
        empty = pt.linear(torch.zeros(1, 2, 1, 3, 4, 0), torch.zeros(8, 0))
    assert empty.shape == (1, 2, 1, 3, 4, 8) and not empty.any()


def test_quantize_leaves_layers_whose_weight_their_module_reads() -> None:
    layer = nn.TransformerEncoderLayer(64, 4, dim_feedforward=96, batch_first=True, layer_norm_eps=1e-6).eval()
    report = pt.optimize(layer, quantize="q8_0")
    assert [name for name, _, reason in report.kept if "reads its weight" in reason] == ["linear1", "linear2"]
    with torch.no_grad():
        assert layer(torch.randn(2, 5, 64)).shape == (2, 5, 64)


def test_an_epsilon_that_is_not_whole_in_billionths_is_not_rounded() -> None:
    x, weight = 1e-5 * torch.randn(4, 64), torch.rand(64)
    for epsilon in (1.5e-9, torch.finfo(torch.float32).eps):
        with pytest.warns(pt.FallbackWarning, match="is not a whole number of billionths"):
            pt.reset_stats()
            found = pt.rms_norm(x, weight, epsilon)
        expected = functional.rms_norm(x.double(), (64,), weight.double(), epsilon)
        torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=0)
        with pytest.raises(pascaline.ArgumentError, match="^epsilon: 1.* is not a whole number of billionths"):
            ops.rmsnorm(x, weight, epsilon=epsilon)
        assert "billionths" in pt.optimize(nn.Sequential(nn.RMSNorm(64, eps=epsilon))).kept[0][2]
    found = ops.rmsnorm(x, weight, epsilon=float(torch.tensor(1e-6)))  # as a file of float32 has it
    torch.testing.assert_close(found, functional.rms_norm(x, (64,), weight, 1e-6), rtol=1e-5, atol=0)


def test_derivatives_of_mixed_types() -> None:
    x, weight, bias = torch.randn(4, 32, requires_grad=True), torch.randn(8, 32).half().requires_grad_(), torch.randn(8).half()
    pt.linear(x, weight, bias).square().sum().backward()
    found = x.grad, weight.grad
    x.grad = weight.grad = None
    functional.linear(x, weight.float(), bias.float()).square().sum().backward()
    torch.testing.assert_close(found, (x.grad, weight.grad), rtol=1e-3, atol=1e-2)
    x.grad, half = None, torch.rand(32).half()
    pt.layer_norm(x, half, half, 1e-6).square().sum().backward()
    found = x.grad
    x.grad = None
    functional.layer_norm(x, (32,), half.float(), half.float(), 1e-6).square().sum().backward()
    torch.testing.assert_close(found, x.grad, rtol=1e-3, atol=1e-3)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_compiles_functions() -> None:
    x, weight = torch.randn(4, 32), torch.randn(8, 32)
    torch.testing.assert_close(torch.jit.script(pt.linear)(x, weight), functional.linear(x, weight), rtol=1e-4, atol=1e-4)
    for function in (pt.linear_swiglu, pt.rms_norm, pt.layer_norm, pt.swiglu, pt.linear_packed):
        torch.jit.script(function)


def test_a_default_device_that_is_not_there_does_not_matter() -> None:
    code = f"""
        import sys
        sys.path.insert(0, {str(pathlib.Path(pascaline.__file__).parents[1])!r})
        import numpy as np, torch
        from pascaline import ops
        torch.set_default_device("xpu")
        assert (ops.add(np.ones(4, np.float32), np.ones(4, np.float32)) == 2).all()
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 0, ran.stderr
