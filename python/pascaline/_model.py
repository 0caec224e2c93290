"""Language models."""

import json
import os
import queue
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import _native
from ._words import Path, path_text, plain, words_of

Text = Callable[[str], object]


def _words(options: dict[str, Any], known: Sequence[str], where: str) -> list[str]:
    for name in options:
        if name.replace("_", "-") not in known:
            raise TypeError(f"there is no argument '{name}'; `pascaline generate --help` lists them as options of {where}")
    return words_of(options)


def _on_white(image: Any) -> Any:
    """An image of PIL as RGB, with what is transparent laid on white as in images that are read from files."""
    if not {"A", "a"} & set(image.getbands()) and "transparency" not in getattr(image, "info", {}):
        return image.convert("RGB")
    import numpy

    pixels = numpy.asarray(image.convert("RGBA")).astype(numpy.uint32)
    alpha = pixels[:, :, 3:]
    if (alpha < 255).any():
        warnings.warn("images: the transparent pixels of an image are laid on white", stacklevel=5)
    weighted = pixels[:, :, :3] * alpha + 255 * (255 - alpha) + 128
    return ((weighted + (weighted >> 8)) >> 8).astype(numpy.uint8)


def _pixels(image: Any) -> Any:
    """A file's name, or pixels of [height, width, 3] in uint8."""
    if isinstance(image, (str, os.PathLike)):
        return path_text("images", image)
    if hasattr(image, "convert") and hasattr(image, "getbands"):  # PIL
        image = _on_white(image)
    import numpy

    pixels = numpy.asarray(image)
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != numpy.uint8:
        raise TypeError(f"images: {type(image).__name__} of {pixels.dtype} {list(pixels.shape)} is not an image; pass a file, "
                        "an image of PIL, or pixels of [height, width, 3] in uint8")
    return numpy.ascontiguousarray(pixels)


class Model:
    """A model that is loaded, with a conversation: a folder as Hugging Face has it, or a GGUF file.

    device: "cuda:N", "cpu" or "emulator"; default: the first GPU, or the processor. db: where winners are; default: the
        user's database. weights, kv_cache: "float16", "int8" and others; context: tokens of a conversation at most.
    options: any other option of `pascaline generate` (docs/reference/cli.md) on the model, with underscores: random_weights=True,
        mmproj=file, gpu_layers=20, attention="window=1024".

    Several threads may use one: they take turns. Raises Error and its kinds for what is missing, damaged or does not fit.
    """

    def __init__(self, model: Path, *, device: str | None = None, db: Path | None = None, weights: str | None = None,
                 kv_cache: str | None = None, context: int | None = None, **options: Any) -> None:
        named = {"model": path_text("model", model), "device": device, "db": path_text("db", db) or None, "weights": weights,
                 "kv_cache": kv_cache, "context": context}
        for name in ("plan", *named):
            if name in options:
                raise TypeError(f"{name} is not an argument here")
        self._native = _native.LanguageModel(words_of(named) + _words(options, _native.model_options(), "the model"))

    @property
    def device(self) -> str:
        """What it runs on."""
        name: str = self._native.device
        return name

    @property
    def context(self) -> int:
        """Tokens that a conversation may have."""
        tokens: int = self._native.context
        return tokens

    @property
    def used(self) -> int:
        """Tokens that the conversation has so far."""
        tokens: int = self._native.used
        return tokens

    def generate(self, prompt: str, *, system: str | None = None, images: Sequence[Any] = (), raw: bool = False,
                 on_text: Text | None = None, **options: Any) -> dict[str, Any]:
        """Answers a prompt from the beginning; `chat` continues from there.

        images: files (PNG, JPEG, WebP), images of PIL, or NumPy arrays of [height, width, 3] in uint8; they come before the prompt.
        raw: continues the prompt as it is, without a chat template. on_text: called with each piece of the answer.
        options: those of `pascaline generate` on an answer: max_tokens=100, greedy=True, temperature=0.7, top_k, top_p, min_p, seed,
            repetition_penalty, presence_penalty, stop=["\\n"].

        Returns what `--json` prints: `text`, `tokens`, `end` (why it ended), times. Ctrl-C, and what on_text raises, ends the
        answer and the conversation.
        """
        return self._generate(prompt, on_text, None, system=system, images=images, raw=raw, **options)

    def _generate(self, prompt: str, on_text: Text | None, look: Callable[[], None] | None, *, system: str | None = None,
                  images: Sequence[Any] = (), raw: bool = False, **options: Any) -> dict[str, Any]:
        if raw and (system is not None or len(images) > 0):
            raise TypeError("raw: a prompt that is continued as it is has neither system nor images")
        return self._told(self._native.generate, (prompt, system, bool(raw)), images, on_text, options, look)

    def chat(self, message: str, *, system: str | None = None, images: Sequence[Any] = (), on_text: Text | None = None,
             **options: Any) -> dict[str, Any]:
        """Answers the user's next message; arguments and result as for `generate`. system: with the first one only."""
        return self._told(self._native.chat, (message, system), images, on_text, options)

    def stream(self, prompt: str, **arguments: Any) -> Iterator[str]:
        """`generate` as an iterator over the pieces of the answer. Closing it ends the answer."""
        pieces: queue.SimpleQueue[Any] = queue.SimpleQueue()
        closed = threading.Event()

        class Closed(Exception):
            pass

        def tell(piece: str) -> None:
            if closed.is_set():
                raise Closed
            pieces.put(piece)

        def look() -> None:  # while a long prompt is read
            if closed.is_set():
                raise Closed

        def work() -> None:
            try:
                self._generate(prompt, tell, look, **arguments)
                pieces.put(None)
            except BaseException as error:  # for whoever iterates
                pieces.put(error)

        if "on_text" in arguments:
            raise TypeError("on_text is not an argument of stream, which gives the pieces")
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            while True:
                piece = pieces.get()
                if piece is None:
                    return
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
        finally:
            closed.set()
            thread.join()

    def clear(self) -> None:
        """Forgets the conversation."""
        self._native.clear()

    def _told(self, function: Any, given: tuple[Any, ...], images: Sequence[Any], on_text: Text | None,
              options: dict[str, Any], look: Callable[[], None] | None = None) -> dict[str, Any]:
        """What a function of the compiled part answers. look: called now and then while there is no text."""
        prompt, system, *rest = given
        if not isinstance(prompt, str) or not isinstance(system, (str, type(None))):
            raise TypeError("the prompt and the system's message are texts")
        if isinstance(images, (str, bytes)) or not isinstance(images, Sequence):
            raise TypeError("images: pass a list of them")
        if on_text is not None and not callable(on_text):
            raise TypeError(f"on_text: {type(on_text).__name__} is not a function")

        def listener(kind: str, text: str) -> None:
            if kind == "text" and on_text is not None:
                on_text(json.loads(text))
            elif look is not None:
                look()

        found: dict[str, Any] = json.loads(
            function(plain("prompt", prompt), plain("system", system or ""), *rest, [_pixels(image) for image in images],
                     _words(options, _native.sampling_options(), "an answer"), None if on_text is None else listener))
        return found
