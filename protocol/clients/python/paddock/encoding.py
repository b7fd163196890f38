"""How groups travel: MessagePack with numpy arrays where both are installed, else JSON."""

import importlib
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paddock.errors import TOLD_CHARACTERS, PaddockError
from paddock.transport import Answer

logger = logging.getLogger("paddock")

MSGPACK = "application/msgpack"


@dataclass(frozen=True)
class Encoding:
    """What to ask for (`accept`), and how to read a lease's answer."""

    name: str
    accept: str
    read: Callable[[Answer], Any]


def read_json(answer: Answer) -> Any:
    """Sequences are lists."""
    return json.loads(answer.body)


def read_answer(answer: Answer, read: Callable[[Answer], Any], *keys: str) -> Any:
    """What `read` makes of an answer: an object that has `keys`.

    Raises:
        PaddockError: where it is none, as a login page that came with status 200.
    """
    cause: Exception | None = None
    try:
        value = read(answer)
        if isinstance(value, dict) and value.keys() >= set(keys):
            return value
    # msgpack and numpy raise classes of their own for bytes that are none of theirs.
    except Exception as error:
        cause = error
    detail = (
        f"{answer.url}: expected an object with {' and '.join(keys)}, found {answer.content_type} "
        f"that begins {answer.body[:TOLD_CHARACTERS]!r}; is that a Paddock server?"
    )
    raise PaddockError(answer.status, "", detail) from cause


def choose_encoding() -> Encoding:
    """The fast one if it can be had; else the log says which packages are missing."""
    packages: dict[str, Any] = {}
    missing: list[str] = []
    for name in ("msgpack", "numpy"):
        try:
            packages[name] = importlib.import_module(name)
        except ImportError:
            missing.append(name)
    if missing:
        logger.info("groups come as JSON with lists: %s not installed", " and ".join(missing))
        return Encoding("json", "application/json", read_json)
    return _msgpack(packages["msgpack"], packages["numpy"])


def _msgpack(msgpack: Any, numpy: Any) -> Encoding:
    """Sequences are read-only arrays over the received bytes: <i4 ids, |u1 mask, <f4 logprobs."""

    def read(answer: Answer) -> Any:
        if answer.content_type != MSGPACK:
            return read_json(answer)
        lease = msgpack.unpackb(answer.body, raw=False, strict_map_key=False)
        for group in lease["groups"]:
            dtypes = group.pop("dtypes")
            for episode in group["episodes"]:
                for sample in episode["samples"]:
                    for name, dtype in dtypes.items():
                        sample[name] = numpy.frombuffer(sample[name], dtype=dtype)
        return lease

    return Encoding("msgpack", f"{MSGPACK}, application/json;q=0.5", read)
