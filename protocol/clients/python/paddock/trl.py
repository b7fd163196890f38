"""TRL: a rollout worker for AsyncGRPOTrainer that trains on the server's tapes and advantages.

    AsyncGRPOTrainer(…, rollout_worker=RolloutWorker(tasks))

It implements RolloutWorkerProtocol of trl/experimental/async_grpo/async_grpo_trainer.py, as it is
from TRL 1.9 to 1.16.
"""

import dataclasses
import itertools
import logging
import queue
import threading
import time
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from paddock.client import Client
from paddock.errors import check_pause
from paddock.rows import Row, episode_rows
from paddock.wire import Episode, Group

logger = logging.getLogger("paddock")

# How long one look for a finished group, or for room in the buffer, may take: after it `stop` is
# seen, seconds.
LOOK_S = 2.0
# A lease lasts from the delivery of one group to its ack, between which only its episodes are read,
# seconds.
LEASE_S = 60.0
# Batches in a row that deliver nothing before the worker gives up: the policy or the tasks are
# broken, not unlucky.
MAX_EMPTY_BATCHES = 3
# `stop` waits so long for the thread, seconds: one look and the requests in it.
STOP_S = 10.0


class RolloutWorker:
    """Keeps batches in flight and puts a `RolloutSample` for every row into `rollout_buffer`.

    A failed member gives no row; the group's advantages were computed without it. The full buffer
    holds new batches back.
    """

    def __init__(
        self,
        tasks: Sequence[Mapping[str, Any]],
        *,
        group_size: int = 8,
        groups_per_batch: int = 8,
        batches_in_flight: int = 2,
        batch: Mapping[str, Any] | None = None,
        buffer_size: int = 512,
        first_version: int | None = None,
        client: Client | None = None,
    ):
        """
        Args:
            tasks: what to play, in the form of `tasks` of a batch request; again from the start
                after the last.
            batch: what every batch request has: policy, reward, advantage, limits, groups.
            buffer_size: rows that wait for the trainer; more would be too old when their turn
                comes.
            first_version: added to TRL's count of weight updates, which begins at 0 in every run.
                Default: the version that the server knows, because a version never goes back.
        """
        if not tasks:
            raise ValueError("tasks: expected at least one, found none")
        self.rollout_buffer: queue.Queue[Any] = queue.Queue(maxsize=buffer_size)
        # TRL empties it into its log. What the worker measures stands in the rows.
        self.metrics_queue: queue.Queue[dict[str, float]] = queue.Queue()
        self._client = client or Client()
        self._tasks = itertools.cycle(tasks)
        self._group_size = group_size
        self._groups_per_batch = groups_per_batch
        self._batches_in_flight = batches_in_flight
        self._batch = dict(batch or {})
        self._backend = self._batch.get("policy", {}).get("backend", "main")
        # Whoever starts a training has no update under way: a pause of a run before is over.
        known = self._client.announce_policy(backend=self._backend, pause=False)["version"]
        self._first_version = (known or 0) if first_version is None else first_version
        self._version = self._first_version
        self._group_numbers = itertools.count()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._alive_at = time.monotonic()

    def start(self) -> None:
        """Begins to play. TRL calls it once, after the first weight update."""
        self._alive_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="paddock-rollouts", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Cancels the batches in flight and ends the thread."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(STOP_S)

    def update_model_version(self, version: int) -> None:
        """Tells the server which version the policy now serves; rows of older ones keep theirs."""
        self._version = self._first_version + version
        self._client.announce_policy(self._version, self._backend)

    def check_health(self, stale_after_s: float) -> None:
        """Raises RuntimeError where the thread has failed, or the server has not answered for
        `stale_after_s` seconds.
        """
        if self._failure is not None:
            raise RuntimeError(f"the rollout worker failed: {self._failure}") from self._failure
        silent_s = time.monotonic() - self._alive_at
        if silent_s > stale_after_s:
            raise RuntimeError(
                f"the rollout server was last heard {silent_s:.0f} s ago, "
                f"expected within {stale_after_s:.0f} s"
            )

    def _run(self) -> None:
        in_flight: deque[str] = deque()
        try:
            self._produce(in_flight)
        except BaseException as error:
            logger.exception("the rollout worker failed")
            self._failure = error
        finally:
            self._client.give_up(*in_flight)

    def _produce(self, in_flight: deque[str]) -> None:
        delivered: dict[str, int] = {}
        empty = 0
        while not self._stopped.is_set():
            while len(in_flight) < self._batches_in_flight:
                in_flight.append(self._submit())
            batch_id = in_flight[0]
            # One at a time: while its rows wait for room, the lease of another would run out.
            answer = self._client.lease(batch_id, max=1, lease_s=LEASE_S, wait_s=LOOK_S)
            self._alive_at = time.monotonic()
            for group in answer["groups"]:
                samples = self._samples(group)
                # From here on the rows are in this process, as they would be in the buffer.
                if self._is_ours(group):
                    delivered[batch_id] = delivered.get(batch_id, 0) + 1
                    for sample in samples:
                        self._put(sample)
            if answer["done"]:
                empty = 0 if delivered.pop(in_flight.popleft(), 0) else empty + 1
                if empty == MAX_EMPTY_BATCHES:
                    raise RuntimeError(self._why_empty(batch_id))
            elif not answer["groups"]:
                check_pause(batch_id, self._client.progress(batch_id))

    def _is_ours(self, group: Group) -> bool:
        """Acknowledges the group. Too late, and it is delivered again: its rows would be trained
        on twice.
        """
        [result] = self._client.ack(group)
        if result in ("acked", "duplicate"):
            return True
        logger.warning(
            "group %s: its ack came to %s after a lease of %s s; its rows are left out",
            group["id"],
            result,
            LEASE_S,
        )
        return False

    def _submit(self) -> str:
        policy = {"version": self._version, **self._batch.get("policy", {})}
        batch = {
            **self._batch,
            "id": f"trl-{uuid.uuid4().hex}",
            "tasks": list(itertools.islice(self._tasks, self._groups_per_batch)),
            "group_size": self._group_size,
            "policy": policy,
        }
        return self._client.submit(batch)["id"]

    def _put(self, sample: Any) -> None:
        while not self._stopped.is_set():
            try:
                return self.rollout_buffer.put(sample, timeout=LOOK_S)
            except queue.Full:
                self._alive_at = time.monotonic()

    def _samples(self, group: Group) -> list[Any]:
        number = next(self._group_numbers)
        return [
            sample
            for episode in group["episodes"]
            for sample in self._episode_samples(group, episode, number)
        ]

    def _episode_samples(self, group: Group, episode: Episode, number: int) -> list[Any]:
        rows = episode_rows(group, episode)
        if not rows:
            return []
        messages = self._client.episode(episode["id"])["messages"]
        first = next(
            (at for at, one in enumerate(messages) if one["role"] == "assistant"), len(messages)
        )
        return [
            _rollout_sample(
                prompt=messages[:first],
                completion=messages[first:],
                **_arrays(row),
                advantage=row.advantage,
                model_version=self._model_version(row),
                group_id=number,
                metrics=_metrics(group, row),
            )
            for row in rows
        ]

    def _model_version(self, row: Row) -> int:
        """The oldest version of the row, in TRL's count, so that the trainer's staleness is never
        too small.
        """
        oldest = min(row.versions, default=self._version)
        return oldest - self._first_version

    def _why_empty(self, batch_id: str) -> str:
        dropped = self._client.progress(batch_id)["groups"]["dropped"]
        reasons = [f"{one['task']} {one['verdict']}: {one['reason']}" for one in dropped[-5:]]
        return (
            f"expected groups, but {MAX_EMPTY_BATCHES} batches in a row delivered none; "
            f"the server dropped: {'; '.join(reasons) or 'none'}"
        )


def _arrays(row: Row) -> dict[str, Any]:
    """The sequences as TRL's own worker has them: TRL asks them for their sum."""
    # TRL cannot be without it; the client can.
    import numpy  # type: ignore[import-not-found, unused-ignore]

    return {
        "input_ids": numpy.asarray(row.ids, dtype=numpy.int64),
        "completion_mask": numpy.asarray(row.mask, dtype=numpy.int64),
        "old_log_probs": numpy.asarray(row.logprobs, dtype=numpy.float32),
    }


def _rollout_sample(**values: Any) -> Any:
    """TRL's `RolloutSample` with the fields of the installed version: `group_id` came later."""
    from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

    known = {field.name for field in dataclasses.fields(RolloutSample)}
    return RolloutSample(**{name: value for name, value in values.items() if name in known})


def _metrics(group: Group, row: Row) -> dict[str, float]:
    """The same keys in every row: TRL's collator takes those of the first for the whole batch."""
    stats = group["stats"]
    return {
        "reward": float(row.reward),
        "reward_std": float(stats["std"] or 0.0),
        "failed_members": float(stats["n"] - stats["scored"]),
        "truncated": float(row.truncated),
    }
