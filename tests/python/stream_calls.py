"""Run by stream_test.py, with a fake CUDA driver as libcuda.so.1: what calls ask of the driver. Prints what was wrong, if
anything was."""

import ctypes
import gc
import os
import pathlib
import sys
import threading
import types
from typing import Any

import numpy as np
import pytest

import pascaline
from pascaline import ops

driver = ctypes.CDLL(sys.argv[1])
driver.fake_current.restype = ctypes.c_void_p
driver.fake_set_current.argtypes = [ctypes.c_void_p]
driver.fake_capture.argtypes = [ctypes.c_size_t, ctypes.c_ulonglong]

OWN = object()


class Array:
    """Memory of the fake card, as other libraries describe theirs."""

    device = 0

    def __init__(self, *shape: int, stream: Any = None) -> None:
        self.memory = np.zeros((int(np.prod(shape)) + 64,), np.float32)
        address = self.memory.ctypes.data
        self.shape = shape
        self.__cuda_array_interface__ = {"version": 3, "shape": shape, "typestr": "<f4", "stream": stream,
                                         "data": (address + -address % 256, False)}


class Stream:
    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


def log() -> list[tuple[str, int]]:
    text = ctypes.create_string_buffer(1 << 20)
    driver.fake_take_log(text, len(text))
    return [(line.split()[0], int(line.split()[1])) for line in text.value.decode().splitlines()]


def launches() -> list[int]:
    return [stream for what, stream in log() if what == "launch"]


def arrays(rows: int, columns: int, stream: Any = None) -> tuple[Array, Array]:
    return Array(rows, columns, stream=stream), Array(rows, columns, stream=stream)


def the_very_first_call_may_not_be_captured() -> None:
    kernel = pascaline.Kernel(pathlib.Path(os.environ["EXAMPLES"]) / "own_kernel" / "saxpy.cu")
    driver.fake_capture(6000, 9)
    for call in [lambda: ops.softmax(Array(4, 32), out=Array(4, 32), stream=6000),
                 lambda: kernel.launch(Array(8), Array(8), Array(8), N=8, stream=6000)]:
        with pytest.raises(pascaline.Error, match="before the capture of the CUDA graph"):
            call()
    driver.fake_capture(6000, 0)
    assert log() == []


def a_call_goes_to_the_arrays_stream_and_waits_for_nothing() -> None:
    x, out = arrays(4, 32)
    ops.softmax(x, out=out)  # the first one prepares
    log()
    for stream, used in [(None, 0), (1, 0), (2, 2), (7777, 7777)]:
        x, out = arrays(4, 32, stream)
        ops.softmax(x, out=out)
        assert log() == [("launch", used)], stream
    for given in [8888, Stream(8888)]:
        ops.softmax(x, out=out, stream=given)  # the arrays' own stream is waited for by an event
        assert log() == [("record", 7777), ("wait_event", 8888), ("launch", 8888)]


def arrays_of_cupy_go_to_its_current_stream() -> None:
    class CupyArray(Array):
        __module__ = "cupy"

        def __dlpack__(self, **arguments: Any) -> Any:
            raise AssertionError("DLPack would make the legacy default stream wait, which a capture forbids")

    library = types.ModuleType("cupy")
    library.cuda = types.SimpleNamespace(get_current_stream=lambda: types.SimpleNamespace(ptr=31))  # type: ignore[attr-defined]
    sys.modules["cupy"] = library
    x, out = CupyArray(4, 32, stream=31), CupyArray(4, 32, stream=31)
    ops.softmax(x, out=out)
    assert log() == [("launch", 31)]
    ops.softmax(Array(4, 32, stream=32), out=out)  # of two libraries
    assert log() == [("record", 32), ("wait_event", 31), ("launch", 31)]
    ops.softmax(x, out=out, stream=types.SimpleNamespace(ptr=33))
    assert log() == [("record", 31), ("wait_event", 33), ("launch", 33)]
    del sys.modules["cupy"]


def streams_that_are_none_are_refused() -> None:
    x, out = arrays(4, 32)
    short = types.SimpleNamespace(__cuda_stream__=lambda: (0,))
    for wrong in ["7", 1.5, True, -1, object(), short, types.SimpleNamespace(__cuda_stream__=lambda: 5)]:
        with pytest.raises(TypeError, match="stream: .* is not a stream"):
            ops.softmax(x, out=out, stream=wrong)
    with pytest.raises(pascaline.ArgumentError, match="x: .*stream 0, which is ambiguous"):
        ops.softmax(Array(4, 32, stream=0), out=out)
    with pytest.raises(pascaline.ArgumentError, match="out: with stream, pass an array"):
        ops.softmax(x, stream=5)
    with pytest.raises(pascaline.ArgumentError, match="stream: the arrays are in host memory"):
        host = np.zeros((4, 32), np.float32)
        ops.softmax(host, out=host.copy(), stream=5)
    assert log() == []


def the_callers_context_stays_what_it_was() -> None:
    x, out = arrays(4, 32)
    for context in [None, 0x5000]:
        driver.fake_set_current(context)
        ops.softmax(x, out=out)
        ops.softmax(*arrays(5, 32)[:1], out=Array(5, 32))
        assert driver.fake_current() == context
        with pytest.raises(pascaline.ArgumentError):
            ops.softmax(x, out=Array(5, 32))
        assert driver.fake_current() == context
    log()
    other = threading.Thread(target=lambda: ops.softmax(x, out=out))  # which has no context
    other.start()
    other.join()
    assert launches() == [0]


def a_capture_takes_what_was_called_before_and_refuses_the_rest() -> None:
    x, out = arrays(4, 32, 9000)
    driver.fake_capture(9000, 1)
    ops.softmax(x, out=out)
    assert log() == [("launch", 9000)]
    new, new_out = arrays(6, 32, 9000)
    with pytest.raises(pascaline.Error, match="softmax: it was not called with these shapes .* before the capture"):
        ops.softmax(new, out=new_out)
    assert log() == []  # nothing that would have spoilt the capture
    ops.softmax(x, out=out)
    driver.fake_capture(9000, 0)
    ops.softmax(new, out=new_out)
    seen = log()
    assert ("refused", 9000) not in seen and seen[-1] == ("launch", 9000)


def calls_that_share_memory_follow_each_other() -> None:
    q, k, v, out = Array(8, 64), Array(4096, 2, 64), Array(4096, 2, 64), Array(8, 64)
    length = Array(1)
    length.__cuda_array_interface__ = {**length.__cuda_array_interface__, "typestr": "<i4"}

    def call(stream: int) -> list[tuple[str, int]]:
        ops.attention_decode(q, k, v, length, out=out, stream=stream)
        return log()

    call(11)
    own = call(12)
    assert [what for what, _ in own] == ["wait_event", "launch", "record"], own
    assert {stream for _, stream in own} == {12}
    assert call(1) == [("wait_event", 0), ("launch", 0), ("record", 0)]
    assert call(1) == [("launch", 0), ("record", 0)]
    # Captured: nothing outside is waited for, and what comes after waits for what came before.
    driver.fake_capture(13, 2)
    driver.fake_capture(14, 2)
    assert call(13) == [("launch", 13), ("record", 13)]
    assert call(14) == [("wait_event", 14), ("launch", 14), ("record", 14)]
    driver.fake_capture(13, 0)
    driver.fake_capture(14, 0)
    driver.fake_capture(15, 3)
    assert call(15) == [("launch", 15), ("record", 15)]
    driver.fake_capture(15, 0)
    assert call(12) == [("wait_event", 12), ("launch", 12), ("record", 12)]


def a_kernel_of_ones_own_is_launched_there_too() -> None:
    kernel = pascaline.Kernel(pathlib.Path(os.environ["EXAMPLES"]) / "own_kernel" / "saxpy.cu")
    x, y, out = Array(1000), Array(1000), Array(1000)
    kernel.launch(x, y, out, N=1000, stream=21)
    log()
    kernel.launch(x, y, out, N=1000, stream=21)
    assert log() == [("launch", 21)]
    driver.fake_capture(22, 4)
    kernel.launch(x, y, out, N=1000, stream=22)
    with pytest.raises(pascaline.Error, match="saxpy: it was not called .* before the capture"):
        kernel.launch(Array(996), Array(996), Array(996), N=996, stream=22)
    driver.fake_capture(22, 0)
    assert log() == [("launch", 22)]
    with pytest.raises(pascaline.ArgumentError, match="x: it has 999 elements"):
        kernel.launch(Array(999), y, out, N=1000)
    host = [np.zeros(1000, np.float32) for _ in range(3)]
    kernel.run(*host, N=1000, device="cuda:0")
    assert ("wait", 0) not in log()  # of the legacy stream
    del kernel
    gc.collect()


for test in [the_very_first_call_may_not_be_captured, a_call_goes_to_the_arrays_stream_and_waits_for_nothing,
             arrays_of_cupy_go_to_its_current_stream, streams_that_are_none_are_refused, the_callers_context_stays_what_it_was,
             a_capture_takes_what_was_called_before_and_refuses_the_rest, calls_that_share_memory_follow_each_other,
             a_kernel_of_ones_own_is_launched_there_too]:
    test()
    print("passed", test.__name__)
