"""`numpy.frombuffer` for tests on machines without the package: a view with `tolist`."""

FORMATS = {"<i4": "i", "|u1": "B", "<f4": "f"}


def frombuffer(data: bytes, dtype: str) -> memoryview:
    """Native byte order, which the little-endian formats of the wire have on every test machine."""
    return memoryview(data).cast(FORMATS[dtype])
