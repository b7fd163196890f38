"""verl: how calls of an agent loop that know only themselves become groups, and groups a batch."""

import asyncio
from contextlib import suppress
from typing import Any, ClassVar

from paddock.wire import Group


class Pass:
    """The calls that began in one pass of the event loop.

    verl's `generate_sequences` starts the calls of a whole batch together, all repeats of each
    prompt, and then waits for them; a prompt's repeats share their uid.
    """

    _open: ClassVar[dict[tuple[asyncio.AbstractEventLoop, bool], "Pass"]] = {}

    def __init__(self, key: tuple[asyncio.AbstractEventLoop, bool]):
        self._key = key
        self._sizes: dict[str, int] = {}
        self.tasks: dict[str, Any] = {}
        self.groups: dict[str, asyncio.Future[Group | None]] = {}
        # The batches that play it, and whether every caller has left.
        self.batches: list[str] = []
        self.abandoned = False
        self._waiting = 0
        self.playing: asyncio.Task[None] | None = None

    @classmethod
    def join(cls, uid: str, task: Any, trains: bool) -> tuple["Pass", int]:
        """The pass of the caller, and its place among the members of its prompt's group."""
        loop = asyncio.get_running_loop()
        joined = cls._open.setdefault((loop, trains), cls((loop, trains)))
        place = joined._sizes.get(uid, 0)
        joined._sizes[uid] = place + 1
        joined._waiting += 1
        joined.tasks[uid] = task
        joined.groups.setdefault(uid, loop.create_future())
        return joined, place

    async def complete(self) -> None:
        """Waits for the end of the pass; whoever comes later begins a new one."""
        try:
            await asyncio.sleep(0)
        finally:
            del self._open[self._key]

    def leave(self) -> None:
        """A caller was cancelled. After the last the pass is abandoned."""
        self._waiting -= 1
        self.abandoned = self._waiting == 0

    def by_size(self) -> dict[int, list[str]]:
        """The prompts by the size of their group."""
        sizes: dict[int, list[str]] = {}
        for uid, size in self._sizes.items():
            sizes.setdefault(size, []).append(uid)
        return sizes

    def settle(self, uids: list[str]) -> "Settle":
        """What a thread that plays these prompts tells the callers through."""
        return Settle(self._key[0], {uid: self.groups[uid] for uid in uids})


class Settle:
    """Hands groups from a thread to the futures of an event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        waiting: dict[str, "asyncio.Future[Group | None]"],
    ):
        self._loop = loop
        self._waiting = waiting

    def group(self, uid: str, group: Group) -> None:
        """The group of this prompt is here. After a late ack it comes again, and is told once."""
        future = self._waiting.pop(uid, None)
        if future is not None:
            self._tell(future, group)

    def rest(self, result: BaseException | None) -> None:
        """No further group comes: the callers that wait get None, or this exception."""
        for future in self._waiting.values():
            self._tell(future, result)
        self._waiting = {}

    def _tell(
        self, future: "asyncio.Future[Group | None]", result: Group | BaseException | None
    ) -> None:
        # A loop that is closed has no caller left to tell.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(_settle, future, result)


def _settle(future: "asyncio.Future[Group | None]", result: Group | BaseException | None) -> None:
    if future.done():
        return
    if isinstance(result, BaseException):
        future.set_exception(result)
    else:
        future.set_result(result)
