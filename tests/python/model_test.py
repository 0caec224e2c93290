"""Language models: the tiny one of the examples, on the processor."""

import os
import pathlib
import signal
import subprocess
import threading
from typing import Any

import numpy as np
import pytest

import pascaline
from pascaline._model import _pixels

TINY = pathlib.Path(__file__).parents[2] / "examples" / "tiny_qwen3_vl"
GREEDY: dict[str, Any] = {"greedy": True, "max_tokens": 8}


@pytest.fixture(scope="module")
def model() -> pascaline.Model:
    return pascaline.Model(TINY, device="cpu")


def test_generate_is_what_the_program_answers(model: pascaline.Model) -> None:
    pieces: list[str] = []
    answer = model.generate("What is this?", images=[TINY / "image.png"], on_text=pieces.append, **GREEDY)
    program = pathlib.Path(os.environ["PASCALINE_PYTHON_PACKAGE"]) / "pascaline" / "bin" / "pascaline"
    shown = subprocess.run([program, "generate", "--model", TINY, "--device", "cpu", "--image", TINY / "image.png", "--prompt",
                            "What is this?", "--greedy", "--max-tokens", "8"], capture_output=True, text=True, check=True)
    assert answer["text"] + "\n" == shown.stdout and "".join(pieces) == answer["text"]
    assert 1 <= len(answer["tokens"]) <= 8 and answer["prompt_tokens"] > 10
    assert model.device.startswith("cpu") and model.used >= answer["prompt_tokens"] and model.context >= model.used


def test_images_are_files_or_pixels(model: pascaline.Model) -> None:
    pixels = (np.arange(64 * 96 * 3) % 251).astype(np.uint8).reshape(64, 96, 3)

    class Pil:  # what of PIL's images is used
        def convert(self, mode: str) -> np.ndarray:
            assert mode == "RGB"
            return pixels

        def getbands(self) -> tuple[str, ...]:
            return ("R", "G", "B")

    one, other = (model.generate("See", images=[image], **GREEDY) for image in (pixels, Pil()))
    assert one["tokens"] == other["tokens"]
    flipped = model.generate("See", images=[pixels[::-1]], **GREEDY)
    assert flipped["prompt_tokens"] == one["prompt_tokens"]
    assert model.generate("See", **GREEDY)["prompt_tokens"] < one["prompt_tokens"]


def test_transparent_images_are_laid_on_white() -> None:
    class Pil:
        def convert(self, mode: str) -> np.ndarray:
            assert mode == "RGBA"
            return np.array([[[0, 0, 0, 0], [0, 0, 0, 255], [100, 0, 0, 51]]], np.uint8)

        def getbands(self) -> tuple[str, ...]:
            return ("R", "G", "B", "A")

    with pytest.warns(UserWarning, match="laid on white"):
        pixels = _pixels(Pil())
    assert pixels.tolist() == [[[255, 255, 255], [0, 0, 0], [224, 204, 204]]]


def test_a_conversation_goes_on_from_where_it_was(model: pascaline.Model) -> None:
    model.clear()
    first = model.chat("Hello", system="Be brief.", **GREEDY)
    assert first["depth"] == 0 and model.used > first["prompt_tokens"]
    second = model.chat("And then?", **GREEDY)
    assert second["depth"] >= first["prompt_tokens"] and second["prompt_tokens"] < first["prompt_tokens"] + 30
    with pytest.raises(pascaline.ArgumentError, match="system: the conversation has begun"):
        model.chat("x", system="y")
    model.clear()
    assert model.used == 0
    assert model.chat("Hello", system="Be brief.", **GREEDY)["tokens"] == first["tokens"]


def test_streams(model: pascaline.Model) -> None:
    expected = model.generate("Tell", greedy=True, max_tokens=20)
    assert "".join(model.stream("Tell", greedy=True, max_tokens=20)) == expected["text"]
    stream = model.stream("Tell", greedy=True, max_tokens=2000)
    next(stream)
    stream.close()  # waits for the end of the answer, which is cut short
    assert model.used == 0
    with pytest.raises(pascaline.ArgumentError):
        next(model.stream("Tell", temperature=-1))
    for file in [TINY / "no.png", TINY / "config.json"]:
        with pytest.raises(pascaline.ArgumentError, match="^images: "):
            model.generate("What is this?", images=[file], **GREEDY)


def test_what_on_text_raises_and_ctrl_c_end_an_answer(model: pascaline.Model) -> None:
    def fail(piece: str) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        model.generate("Tell", on_text=fail, greedy=True, max_tokens=3000)
    assert model.used == 0
    with pytest.raises(KeyboardInterrupt):
        model.generate("Tell", on_text=lambda piece: os.kill(os.getpid(), signal.SIGINT), greedy=True, max_tokens=3000)
    assert model.generate("Hello", **GREEDY)["tokens"]


def test_threads_take_turns(model: pascaline.Model) -> None:
    expected = model.generate("Hello", **GREEDY)["tokens"]
    found: list[list[int]] = []
    threads = [threading.Thread(target=lambda: found.append(model.generate("Hello", **GREEDY)["tokens"])) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 3


BAD: list[tuple[Any, Any, str]] = [
    (lambda m: pascaline.Model("/no/such/folder"), pascaline.Error, "/no/such/folder"),
    (lambda m: pascaline.Model(7), TypeError, "model: int is not a path"),  # type: ignore[arg-type]
    (lambda m: pascaline.Model(TINY, device="gpu"), pascaline.Error, "device"),
    (lambda m: pascaline.Model(TINY, device="cuda:77"), pascaline.Error, "77|no CUDA driver"),
    (lambda m: pascaline.Model(TINY, device="cpu", weights="float12"), pascaline.Error, "weights"),
    (lambda m: pascaline.Model(TINY, device="cpu", context=10**15), pascaline.Error, "context"),
    (lambda m: pascaline.Model(TINY, plan=True), TypeError, "plan"),
    (lambda m: pascaline.Model(TINY, colour="red"), TypeError, "no argument 'colour'"),
    (lambda m: pascaline.Model(TINY, device="cpu", help=True), TypeError, "no argument 'help'"),
    (lambda m: pascaline.Model(TINY, device="cpu", mmproj=TINY), pascaline.Error, "leave out mmproj"),
    (lambda m: m.generate("x", help=True), TypeError, "no argument 'help'"),
    (lambda m: m.generate("x", max_tokens=True), ValueError, "max_tokens: .*'true'"),
    (lambda m: m.generate("x", stop=[""]), ValueError, "stop: it is empty"),
    (lambda m: m.generate(7), TypeError, "texts"),
    (lambda m: m.generate("x\0"), ValueError, "zero byte"),
    (lambda m: m.generate("x", images="cat.png"), TypeError, "images: pass a list"),
    (lambda m: m.generate("x", images=["/no/such.png"]), pascaline.Error, "/no/such.png"),
    (lambda m: m.generate("x", images=[np.zeros((4, 4), np.uint8)]), TypeError, "images: ndarray of uint8"),
    (lambda m: m.generate("x", images=[np.zeros((4, 4, 3))]), TypeError, "images: ndarray of float64"),
    (lambda m: m.generate("x", images=[np.zeros((0, 4, 3), np.uint8)]), pascaline.Error, ""),
    (lambda m: m.generate("x", images=[np.zeros((2, 2000, 3), np.uint8)]), pascaline.Error, "is too long"),
    (lambda m: m.generate("x", raw=True, system="y"), TypeError, "raw"),
    (lambda m: m.generate("x", on_text=3), TypeError, "on_text"),
    (lambda m: m.generate("x", max_tokens=0), ValueError, "max_tokens"),
    (lambda m: m.generate("x", top_p=2), ValueError, "top_p|top-p"),
    (lambda m: m.generate("x", weights="q8_0"), TypeError, "no argument 'weights'"),
    (lambda m: m.generate("word " * 100_000), pascaline.Error, "context"),
    (lambda m: m.stream("x", on_text=print).__next__(), TypeError, "on_text"),
]


@pytest.mark.parametrize("call, raised, message", BAD)
def test_what_does_not_fit_is_refused(model: pascaline.Model, call: Any, raised: Any, message: str) -> None:
    with pytest.raises(raised, match=message or None):
        call(model)
