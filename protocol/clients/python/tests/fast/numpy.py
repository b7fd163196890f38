"""The few words of numpy that the package uses, for tests on machines without it."""

import array
from typing import Any

FORMATS = {"<i4": "i", "|u1": "B", "<f4": "f"}

int64, float32 = "q", "f"


class ndarray(list[Any]):  # noqa: N801
    """One dimension, with the two methods that trainers call."""

    def tolist(self) -> list[Any]:
        return list(self)

    def sum(self) -> Any:
        return sum(self)


def asarray(values: Any, dtype: str) -> ndarray:
    return ndarray(array.array(dtype, values))


def frombuffer(data: bytes, dtype: str) -> memoryview:
    """Native byte order, which the little-endian formats of the wire have on every test machine."""
    return memoryview(data).cast(FORMATS[dtype])
