"""A reader of MessagePack (https://github.com/msgpack/msgpack/blob/master/spec.md), for tests on
machines without the package: `unpackb` with the arguments that the client gives."""

import struct
from typing import Any

# First byte: how to read the number behind it.
NUMBERS = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
# First byte: how to read the length behind it, and what has that length.
LENGTHS = {
    0xC4: (">B", "bin"),
    0xC5: (">H", "bin"),
    0xC6: (">I", "bin"),
    0xD9: (">B", "str"),
    0xDA: (">H", "str"),
    0xDB: (">I", "str"),
    0xDC: (">H", "array"),
    0xDD: (">I", "array"),
    0xDE: (">H", "map"),
    0xDF: (">I", "map"),
}
CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def unpackb(data: bytes, *, raw: bool, strict_map_key: bool) -> Any:
    assert not raw and not strict_map_key
    value, end = _value(data, 0)
    assert end == len(data), f"{len(data) - end} bytes are left"
    return value


def _value(data: bytes, at: int) -> tuple[Any, int]:
    first, at = data[at], at + 1
    if first < 0x80:
        return first, at
    if first >= 0xE0:
        return first - 0x100, at
    if first < 0xC0:
        kind, size = ("map", 0x0F) if first < 0x90 else ("array", 0x0F)
        return (
            _sized(data, at, "str", first & 0x1F)
            if first >= 0xA0
            else _sized(data, at, kind, first & size)
        )
    if first in CONSTANTS:
        return CONSTANTS[first], at
    if first in NUMBERS:
        form = NUMBERS[first]
        return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    form, kind = LENGTHS[first]
    [length] = struct.unpack_from(form, data, at)
    return _sized(data, at + struct.calcsize(form), kind, length)


def _sized(data: bytes, at: int, kind: str, length: int) -> tuple[Any, int]:
    if kind in ("bin", "str"):
        part = data[at : at + length]
        assert len(part) == length, "the data ends early"
        return part if kind == "bin" else part.decode(), at + length
    items = []
    for _ in range(length if kind == "array" else 2 * length):
        item, at = _value(data, at)
        items.append(item)
    return (items if kind == "array" else dict(zip(items[::2], items[1::2], strict=True))), at
