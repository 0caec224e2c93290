#!/usr/bin/env python3
"""Writes data/golden.json: what the package `gguf` (0.19) makes of blocks and values drawn by SplitMix64.

  python3 -m venv v && v/bin/pip install gguf==0.19.0 llama-cpp-python==0.3.16 xxhash
  v/bin/python tests/runtime/formats/make_golden.py v/lib/python3.*/site-packages/llama_cpp/lib/libggml-base.so

For each format: XXH64 of the float32 bytes of its first 10,000 and of 1,000,000 blocks dequantized; and the squared error
of each of 600 blocks quantized by the package (`squared_errors`) or, where it has no quantizer, by that library of
llama.cpp (`squared_errors_of_llama`).
"""
import ctypes
import json
import pathlib
import sys

import numpy
import xxhash
from gguf import GGMLQuantizationType, quants

FORMATS = {"q8_0": ("Q8_0", 32, 34, [0]), "q4_0": ("Q4_0", 32, 18, [0]), "q4_1": ("Q4_1", 32, 20, [0, 2]),
           "q5_0": ("Q5_0", 32, 22, [0]), "q5_1": ("Q5_1", 32, 24, [0, 2]),
           "q5_k": ("Q5_K", 256, 176, [0, 2]), "q4_k": ("Q4_K", 256, 144, [0, 2]), "iq4_nl": ("IQ4_NL", 32, 18, [0]),
           "iq4_xs": ("IQ4_XS", 256, 136, [0]),
           "mxfp4": ("MXFP4", 32, 17, []), "q3_k": ("Q3_K", 256, 110, [108]), "q2_k": ("Q2_K", 256, 84, [80, 82]),
           "q6_k": ("Q6_K", 256, 210, [208])}
FEW, MANY, CHUNK, JUDGED = 10_000, 1_000_000, 10_000, 600


def splitmix(first, count):
    """Numbers `first` to `first + count` of SplitMix64 from seed 0."""
    with numpy.errstate(over="ignore"):
        state = (numpy.arange(first, first + count, dtype=numpy.uint64) + numpy.uint64(1)) * numpy.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        return state ^ (state >> numpy.uint64(31))


def chunk_of_blocks(chunk, size, halves):
    """CHUNK blocks; scales that are no numbers get a smaller exponent. The first eight of all are extreme."""
    words = (CHUNK * size + 7) // 8
    blocks = splitmix(chunk * words, words).view(numpy.uint8)[:CHUNK * size].reshape(CHUNK, size).copy()
    if chunk == 0:
        for i, byte in enumerate((0x00, 0xFF, 0x80, 0x7F, 0x01, 0x0F, 0xF0, 0x88)):
            blocks[i] = byte
    for at in halves:
        high = blocks[:, at + 1]
        high[(high & 0x7C) == 0x7C] ^= 0x40
    return blocks


def drawn_values(count, values):
    """Blocks of float32: sums of uniform numbers, times a power of two; every eighth block one of a few special ones."""
    draws = (splitmix(0, 4 * count * values) >> numpy.uint64(40)).astype(numpy.float64).reshape(count, values, 4)
    blocks = draws.sum(axis=2) / 2 ** 24 - 2
    for block in range(count):
        special = block % 32
        if special == 7:
            blocks[block] = 0
        elif special == 15:
            blocks[block] = 3.25
        elif special == 23:
            blocks[block] = abs(blocks[block]) + 5
        elif special == 31:
            blocks[block, 1:] *= 2.0 ** -10
        blocks[block] *= 2.0 ** (block % 41 - 30)
    return blocks.astype(numpy.float32)


def quantized_by_llama(library, values, kind, size):
    blocks = numpy.zeros((len(values), size), numpy.uint8)
    int64, pointer = ctypes.c_int64, ctypes.c_void_p
    library.ggml_quantize_chunk.argtypes = [ctypes.c_int, pointer, pointer, int64, int64, int64, pointer]
    library.ggml_quantize_chunk(int(kind), values.ctypes.data, blocks.ctypes.data, 0, *values.shape, None)
    return blocks


def main():
    library = ctypes.CDLL(sys.argv[1])
    golden = {}
    for name, (type_name, values, size, halves) in FORMATS.items():
        kind = GGMLQuantizationType[type_name]
        hashed, entry = xxhash.xxh64(), {}
        for chunk in range(MANY // CHUNK):
            hashed.update(quants.dequantize(chunk_of_blocks(chunk, size, halves), kind).astype("<f4").tobytes())
            if chunk == FEW // CHUNK - 1:
                entry["few"] = hashed.hexdigest()
        entry["many"] = hashed.hexdigest()
        drawn = drawn_values(JUDGED, values)
        try:
            key, blocks = "squared_errors", quants.quantize(drawn, kind)
        except NotImplementedError:
            key, blocks = "squared_errors_of_llama", quantized_by_llama(library, drawn, kind, size)
        differences = drawn.astype(numpy.float64) - quants.dequantize(blocks, kind).astype(numpy.float64)
        entry[key] = [float(error) for error in (differences ** 2).sum(axis=1)]
        golden[name] = entry
    path = pathlib.Path(__file__).parent / "data" / "golden.json"
    path.write_text(json.dumps(golden) + "\n", encoding="utf-8")


main()
