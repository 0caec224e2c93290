"""Damages contents in the ways that readers fail on; the same random numbers give the same damage."""

import copy
import json
import struct

NUMBERS = [b"0", b"-1", b"1e999", b"-1e308", b"9223372036854775807", b"-9223372036854775808", b"18446744073709551616",
           b"99999999999999999999999999", b"4294967296", b"2147483648", b"0.1", b"1e-320", b"NaN", b"-0"]
WORDS = NUMBERS + [b"null", b"true", b"{}", b"[]", b'""', b'"', b"\\", b"\\u0000", b"\\ud800", b"\0", b"\x1b[31m",
                   b"\xff\xfe", b"\xe2\x80\xae", b"../../../../etc/passwd", b"%s%n", b"'; DROP TABLE trials; --"]
VALUES = [None, True, False, 0, -1, 1, 3, 1 << 31, (1 << 63) - 1, -(1 << 63), 1 << 64, 0.5, -1e308, 1e308, 1e-320, "",
          "0", "x", "../x", "\x1b[31m", "\u202e", "N", "N / 0", "1 << 62", "N * 1e300", "(" * 500 + ")" * 500, "a" * 70000,
          [], {}, [[]], {"": {}}, [0] * 3000, list(range(50)), ["x"] * 200]


def nested(depth, opening=b"[", closing=b"]"):
    return opening * depth + closing * depth


def bytes_damaged(random, content):
    """One to six changes of a binary content."""
    out = bytearray(content)
    for _ in range(random.randint(1, 6)):
        size = len(out)
        at = random.randrange(size) if size else 0
        kind = random.randrange(8)
        if kind == 0 and size:
            out[at] ^= 1 << random.randrange(8)
        elif kind == 1 and size:
            out[at] = random.choice((0, 0xFF, 0x7F, 0x80))
        elif kind == 2:
            del out[at:]
        elif kind == 3:
            del out[at:at + random.randint(1, 64)]
        elif kind == 4:
            piece = out[at:at + random.randint(1, 256)]
            out[at:at] = piece * random.randint(1, 8)
        elif kind == 5:
            width = random.choice((2, 4, 8))
            number = random.choice((0, 1, (1 << 8 * width) - 1, 1 << 8 * width - 1, (1 << 8 * width - 1) - 1))
            out[at:at + width] = number.to_bytes(width, random.choice(("little", "big")))
        elif kind == 6:
            out[at:at] = random.choice(WORDS)
        else:
            out[at:at + 16] = random.randbytes(16)
    return bytes(out)


def places(document, path=()):
    """Every place in a document, its own included."""
    yield path
    items = document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


def document_altered(random, document):
    """One to four values replaced, removed, repeated or moved; still a document."""
    document = copy.deepcopy(document)
    for _ in range(random.randint(1, 4)):
        path = random.choice(list(places(document)))
        if not path:
            continue
        parent = document
        for key in path[:-1]:
            parent = parent[key]
        key, kind = path[-1], random.randrange(5)
        if kind <= 1:
            parent[key] = copy.deepcopy(random.choice(VALUES))
        elif kind == 2:
            del parent[key]
        elif kind == 3 and isinstance(parent, list):
            parent.extend(copy.deepcopy(parent[key]) for _ in range(random.choice((1, 2, 100))))
        elif isinstance(parent, dict):
            parent[random.choice(("", "x", str(key).upper(), "\x1b[2J"))] = parent.pop(key)
    return document


def text_damaged(random, text):
    """One to six changes of a text: numbers, words, nesting, bytes."""
    kind = random.randrange(6)
    if kind == 0:
        at = random.randrange(len(text) + 1)
        bomb = nested(random.choice((100, 10_000, 300_000)), *random.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")"))))
        return text[:at] + bomb + text[at:]
    if kind == 1:
        digits = [i for i, byte in enumerate(text) if 48 <= byte < 58]
        if digits:
            at = random.choice(digits)
            return text[:at] + random.choice(NUMBERS) + text[at + 1:]
    return bytes_damaged(random, text)


def json_damaged(random, document):
    """A JSON file: mostly one that is well formed and wrong."""
    if random.random() < 0.65:
        return json.dumps(document_altered(random, document)).encode("utf-8", "surrogatepass")
    return text_damaged(random, json.dumps(document, indent=1).encode())


def safetensors_damaged(random, content):
    """Header and bytes apart, so that more than the length is reached."""
    if random.random() < 0.3:
        return bytes_damaged(random, content[:random.choice((64, 4096, len(content)))])
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    for tensor in random.sample(sorted(header), 2):
        kind = random.randrange(4)
        if kind == 0:
            header[tensor]["data_offsets"] = [random.choice((0, -4, 1 << 40, 1 << 63)), random.choice((0, 4, 1 << 62))]
        elif kind == 1:
            header[tensor]["shape"] = random.choice(([1 << 32, 1 << 32], [-1], [0], [], [1] * 10_000, ["a"]))
        elif kind == 2:
            header[tensor]["dtype"] = random.choice(("F16", "BF16", "I64", "", "F32 ", 5, None))
        else:
            header[random.choice(("", "x", tensor + "\0", "__metadata__"))] = header.pop(tensor)
    text = json.dumps(header).encode()
    if random.random() < 0.2:
        text = text_damaged(random, text)
    length = len(text) if random.random() < 0.9 else random.choice((0, 1, 1 << 30, (1 << 64) - 1, len(text) + 1))
    return struct.pack("<Q", length) + text + content[8 + size:]


def database_damaged(random, content):
    """A database file: bytes of its header, of its pages, its length; the text inside stays mostly readable."""
    out = bytearray(content)
    for _ in range(random.randint(1, 12)):
        kind = random.randrange(6)
        if kind == 0:
            out[random.randrange(100)] = random.randrange(256)
        elif kind == 1:
            page = random.randrange(max(1, len(out) // 4096)) * 4096
            at = min(page + random.randrange(24), len(out) - 1)
            out[at] = random.choice((0, 1, 2, 5, 10, 13, 0x7F, 0xFF))
        elif kind == 2:
            out[random.randrange(len(out))] ^= 1 << random.randrange(8)
        elif kind == 3:
            pages = max(2, len(out) // 4096)
            a, b = random.randrange(pages) * 4096, random.randrange(pages) * 4096
            out[a:a + 4096] = out[b:b + 4096]
        elif kind == 4 and random.random() < 0.2:
            del out[random.randrange(len(out)):]
            out = out or bytearray(b"S")
        else:
            at = random.randrange(len(out))
            out[at:at + 8] = random.randbytes(8)[:len(out) - at]
    return bytes(out)
