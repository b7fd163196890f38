"""Finished groups of a batch, one after the other: leased, used, acknowledged."""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Protocol, Self

from paddock.errors import PaddockError, check_pause
from paddock.wire import AckResult, Group, LeaseAnswer

logger = logging.getLogger("paddock")

# A server that is stopping answers at once instead of waiting: it is not asked more often than
# this, seconds.
CALM_S = 0.5


class Leasing(Protocol):
    """What the iterator needs of the client."""

    def lease(self, batch_id: str, max: int, lease_s: float, wait_s: float) -> LeaseAnswer: ...

    def ack(self, *groups: Group) -> list[AckResult]: ...

    def nack(self, *groups: Group, reason: str | None = None) -> list[AckResult]: ...

    def progress(self, batch_id: str) -> dict[str, Any]: ...

    def once(self) -> Self: ...


class Groups(Iterator[Group]):
    """Iterates until the batch is done. Asking for the next group acknowledges the one before.

        with client.groups("step-41") as groups:
            for group in groups:
                train(group)

    An exception in the body hands back what is not acknowledged, and another trainer gets it; it
    goes on even where the server cannot be told.
    `break` acknowledges the group of the body that it leaves. Without `with`, a group whose body
    was left that way stays leased until its lease runs out, and is delivered again. `ack` and
    `nack` decide at once and otherwise. A batch that paused itself raises BatchPaused.
    """

    def __init__(
        self,
        client: Leasing,
        batch_id: str,
        max: int,
        lease_s: float,
        wait_s: float,
        sleep: Callable[[float], None] = time.sleep,
    ):
        if not 0 < wait_s <= 60:
            raise ValueError(f"wait_s: expected above 0 and at most 60 seconds, found {wait_s}")
        self._client = client
        self._batch_id = batch_id
        self._max = max
        self._lease_s = lease_s
        self._wait_s = wait_s
        self._sleep = sleep
        self._leased: deque[Group] = deque()
        self._current: Group | None = None

    def __next__(self) -> Group:
        if self._current is not None:
            self.ack()
        while not self._leased:
            began = time.monotonic()
            answer = self._client.lease(self._batch_id, self._max, self._lease_s, self._wait_s)
            self._leased.extend(answer["groups"])
            if answer["done"]:
                raise StopIteration
            if self._leased:
                break
            check_pause(self._batch_id, self._client.progress(self._batch_id))
            if time.monotonic() - began < min(CALM_S, self._wait_s):
                self._sleep(CALM_S)
        self._current = self._leased.popleft()
        return self._current

    def ack(self) -> AckResult:
        """Acknowledges the current group now. `late`: its lease had run out, so that it may be
        delivered once more.
        """
        group = self._open_group("ack")
        [result] = self._client.ack(group)
        self._current = None
        # A duplicate is the answer to a request that was sent twice: it counted once.
        if result not in ("acked", "duplicate"):
            logger.warning(
                "group %s: its ack came to %s after a lease of %s s; "
                "it may have been delivered twice: raise lease_s",
                group["id"],
                result,
                self._lease_s,
            )
        return result

    def nack(self, reason: str | None = None) -> AckResult:
        """Hands the current group back now: it is ready again at once."""
        [result] = self._client.nack(self._open_group("nack"), reason=reason)
        self._current = None
        return result

    def _open_group(self, verb: str) -> Group:
        if self._current is None:
            raise ValueError(
                f"{verb}: expected a group that is open, found none; take the next one first"
            )
        return self._current

    def close(self) -> None:
        """Hands back every group that is leased and not acknowledged."""
        self._hand_back(self._client)

    def _hand_back(self, client: Leasing) -> None:
        open_groups = ([self._current] if self._current else []) + list(self._leased)
        if open_groups:
            client.nack(*open_groups, reason="the consumer stopped")
        self._current = None
        self._leased.clear()

    def _give_up(self) -> None:
        """Hands back in one short try: an exception is under way, and nobody waits."""
        try:
            self._hand_back(self._client.once())
        except (PaddockError, ConnectionError) as error:
            logger.warning("groups are delivered again when their leases run out: %s", error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            return self._give_up()
        try:
            if self._current is not None:
                self.ack()
        except BaseException:
            self._give_up()
            raise
        self.close()
