"""How groups travel: MessagePack with numpy arrays where both are installed, else JSON."""

import importlib
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from paddock.transport import Answer
from paddock.wire import LeaseAnswer

logger = logging.getLogger("paddock")

MSGPACK = "application/msgpack"


@dataclass(frozen=True)
class Encoding:
    """What to ask for (`accept`), and how to read a lease's answer."""

    name: str
    accept: str
    read: Callable[[Answer], LeaseAnswer]


def read_json(answer: Answer) -> LeaseAnswer:
    """Sequences are lists."""
    return cast(LeaseAnswer, json.loads(answer.body))


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

    def read(answer: Answer) -> LeaseAnswer:
        if answer.content_type != MSGPACK:
            return read_json(answer)
        lease = msgpack.unpackb(answer.body, raw=False, strict_map_key=False)
        for group in lease["groups"]:
            dtypes = group.pop("dtypes")
            for episode in group["episodes"]:
                for sample in episode["samples"]:
                    for name, dtype in dtypes.items():
                        sample[name] = numpy.frombuffer(sample[name], dtype=dtype)
        return cast(LeaseAnswer, lease)

    return Encoding("msgpack", f"{MSGPACK}, application/json;q=0.5", read)
