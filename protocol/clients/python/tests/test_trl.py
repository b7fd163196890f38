"""TRL: what the rollout worker puts into its buffer, as AsyncGRPOTrainer reads it."""

import queue
import sys
import threading
import unittest
from typing import Any

from paddock import Client
from tests.support import FOLDER, GROUP_SIZE, TROUBLE, TROUBLED, HouseTest, is_cut, set_faults, sums

# TRL brings numpy; where it is not installed, a stand-in does.
sys.path.append(str(FOLDER / "fast"))

# After tests.support, which lets the stubs be imported.
from paddock.trl import RolloutWorker
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer, collate


class Recording(Client):
    """Keeps the groups that it leased and the batches that it submitted and cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.leased: list[Any] = []
        self.submitted: list[Any] = []
        self.cancelled: list[str] = []

    def lease(self, *args: Any, **options: Any) -> Any:
        answer = super().lease(*args, **options)
        self.leased.extend(answer["groups"])
        return answer

    def submit(self, batch: Any) -> Any:
        self.submitted.append(batch)
        return super().submit(batch)

    def cancel(self, batch_id: str) -> Any:
        self.cancelled.append(batch_id)
        return super().cancel(batch_id)


class OneBatch(Recording):
    """Tells when the worker asks for a second batch."""

    at_second_batch: Any

    def submit(self, batch: Any) -> Any:
        if self.submitted:
            self.at_second_batch()
        return super().submit(batch)

    def rows_of_distinct_groups(self) -> int:
        first = self.leased[0]["batch"]
        groups = {one["id"]: one for one in self.leased if one["batch"] == first}
        return sum(len(one["samples"]) for group in groups.values() for one in group["episodes"])


class Hasty(OneBatch):
    """Leases when both groups are ready, and for half a second."""

    def lease(self, batch_id: str, **options: Any) -> Any:
        while not self.leased and self.progress(batch_id)["groups"]["ready"] < 2:
            pass
        return super().lease(batch_id, **{**options, "lease_s": 0.5})

    def wait_until_none_is_leased(self) -> None:
        while self.progress(self.leased[0]["batch"])["groups"]["leased"]:
            pass


class Late(OneBatch):
    """Acknowledges the first group when its lease has run out."""

    def lease(self, batch_id: str, **options: Any) -> Any:
        lease_s = options["lease_s"] if self.leased else 0.05
        return super().lease(batch_id, **{**options, "lease_s": lease_s})

    def ack(self, *groups: Any) -> Any:
        while len(self.leased) == 1 and self.progress(groups[0]["batch"])["groups"]["leased"]:
            pass
        return super().ack(*groups)


def drain(worker: RolloutWorker) -> list[Any]:
    """What is put until the worker's thread has ended."""
    rows = []
    assert worker._thread is not None
    while worker._thread.is_alive() or not worker.rollout_buffer.empty():
        try:
            rows.append(worker.rollout_buffer.get(timeout=0.05))
        except queue.Empty:
            continue
    return rows


class Full(queue.Queue[Any]):
    """A buffer without room: each try is told in `tries` and refused after a word in `go`."""

    def __init__(self) -> None:
        super().__init__()
        self.tries = threading.Semaphore(0)
        self.go = threading.Semaphore(0)

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        self.tries.release()
        self.go.acquire()
        raise queue.Full


def without_version(batch: dict[str, Any]) -> dict[str, Any]:
    policy = {key: value for key, value in batch["policy"].items() if key != "version"}
    return {**batch, "policy": policy}


class TrlTest(HouseTest):
    def setUp(self) -> None:
        self.client = Recording()
        self.workers: list[RolloutWorker] = []

    def tearDown(self) -> None:
        for worker in self.workers:
            worker.stop()
        super().tearDown()

    def worker(self, **some: Any) -> RolloutWorker:
        options: dict[str, Any] = {
            "group_size": GROUP_SIZE,
            "groups_per_batch": 1,
            "batches_in_flight": 1,
            "batch": without_version(TROUBLED),
            "client": self.client,
            **some,
        }
        worker = RolloutWorker(options.pop("tasks", sums(0)), **options)
        self.workers.append(worker)
        return worker

    def test_a_troubled_group_arrives_aligned_and_without_its_failed_members(self) -> None:
        set_faults(*TROUBLE)
        worker = self.worker()
        worker.update_model_version(1)
        worker.start()
        samples = [worker.rollout_buffer.get(timeout=20)]
        group = self.client.leased[0]
        self.assert_troubled(group)
        scored = [one for one in group["episodes"] if one["reward"] is not None]
        expected = [
            (sample["ids"], sample["mask"], sample["logprobs"], episode["advantage"])
            for episode in scored
            for sample in episode["samples"]
        ]
        self.assertGreater(len(expected), len(scored))
        samples.extend(worker.rollout_buffer.get(timeout=20) for _ in expected[1:])
        collate(samples)
        arrived = [
            (one.input_ids, one.completion_mask, one.old_log_probs, one.advantage)
            for one in samples
        ]
        self.assertEqual(
            [list(map(to_list, one)) for one in expected],
            [list(map(to_list, one)) for one in arrived],
        )
        self.assertEqual({one.model_version for one in samples}, {1})
        self.assertEqual(len({one.group_id for one in samples}), 1)
        self.assertEqual(
            {one.metrics["failed_members"] for one in samples}, {float(GROUP_SIZE - len(scored))}
        )
        self.assertEqual({one.metrics["truncated"] for one in samples}, {0.0, 1.0})
        self.assertTrue(any(is_cut(one) for one in scored))
        # Each episode once: the advantages of the scored members sum to zero without the failed.
        self.assertAlmostEqual(sum(one["advantage"] for one in scored), 0.0, places=9)

    def test_the_trainer_trains_over_weight_updates_and_the_worker_stops_with_it(self) -> None:
        before = self.client.announce_policy(pause=False)["version"] or 0
        worker = self.worker(tasks=sums(0, 1), group_size=4, batches_in_flight=2)
        args = AsyncGRPOConfig(max_steps=3, per_device_train_batch_size=8)
        data = [{"prompt": [{"role": "user", "content": ""}]}]
        trainer = AsyncGRPOTrainer("m", [], args=args, train_dataset=data, rollout_worker=worker)
        trainer.train()
        self.assertEqual(len(trainer.trained), 24)
        # One update before the first step and one after each, told to the server as it goes on.
        self.assertEqual(trainer.model_version, 4)
        self.assertEqual(self.client.announce_policy(pause=False)["version"], before + 4)
        tasks = [one["tasks"][0]["task"] for one in self.client.submitted[:4]]
        self.assertEqual(tasks, [f"arithmetic/sum-{number}" for number in (0, 1, 0, 1)])
        self.assertTrue(self.client.cancelled)
        # TRL moves the weights itself, whoever plays.
        expected = ["init", *["pause", "send", "resume"] * 4, "destroy"]
        self.assertEqual(trainer.weight_transfer.calls, expected)

    def test_while_rows_wait_for_room_no_lease_runs_out_and_no_group_is_trained_on_twice(
        self,
    ) -> None:
        client = Hasty()
        worker = self.worker(
            tasks=sums(0, 1), group_size=4, groups_per_batch=2, buffer_size=1, client=client
        )
        client.at_second_batch = worker._stopped.set
        worker.start()
        rows = [worker.rollout_buffer.get(timeout=20)]
        client.wait_until_none_is_leased()
        rows.extend(drain(worker))
        self.assertEqual(len(rows), client.rows_of_distinct_groups())

    def test_a_group_whose_ack_is_late_is_left_out_until_it_comes_again(self) -> None:
        client = Late()
        worker = self.worker(group_size=4, client=client)
        client.at_second_batch = worker._stopped.set
        with self.assertLogs("paddock", "WARNING") as log:
            worker.start()
            rows = drain(worker)
        self.assertIn("late", log.output[0])
        self.assertEqual([one["lease"]["delivery"] for one in client.leased[:2]], [1, 2])
        self.assertEqual(len(rows), client.rows_of_distinct_groups())

    def test_a_full_buffer_holds_back_and_is_no_sign_of_death(self) -> None:
        worker = self.worker(group_size=4)
        worker.rollout_buffer = full = Full()
        worker.start()
        self.assertTrue(full.tries.acquire(timeout=20))
        worker._alive_at -= 61
        full.go.release()
        self.assertTrue(full.tries.acquire(timeout=20))
        worker.check_health(60)
        self.assertEqual(len(self.client.submitted), 1)
        worker._stopped.set()
        full.go.release()

    def test_batches_that_deliver_nothing_are_a_failure_that_check_health_raises(self) -> None:
        set_faults({"kind": "notokens"})
        worker = self.worker(group_size=2, batch={"groups": {"attempts": 1}})
        with self.assertLogs("paddock", "ERROR"):
            worker.start()
            assert worker._thread is not None
            worker._thread.join(20)
        with self.assertRaisesRegex(RuntimeError, "3 batches in a row.*token_ids"):
            worker.check_health(60)

    def test_a_worker_that_fails_leaves_no_batch_running(self) -> None:
        set_faults({"kind": "hang"})
        worker = self.worker(group_size=2)

        def lease(*args: Any, **options: Any) -> Any:
            raise RuntimeError("no memory")

        self.client.lease = lease  # type: ignore[method-assign]
        with self.assertLogs("paddock", "ERROR"):
            worker.start()
            assert worker._thread is not None
            worker._thread.join(20)
        self.assertEqual(len(self.client.cancelled), 1)
        self.assertEqual(self.client.progress(self.client.cancelled[0])["state"], "cancelled")

    def test_a_server_that_is_silent_for_too_long_is_a_failure(self) -> None:
        worker = self.worker()
        worker.check_health(60)
        worker._alive_at -= 61
        with self.assertRaisesRegex(RuntimeError, "61 s ago, expected within 60 s"):
            worker.check_health(60)

    def test_without_tasks_there_is_nothing_to_play(self) -> None:
        with self.assertRaisesRegex(ValueError, "tasks"):
            RolloutWorker([])


def to_list(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


if __name__ == "__main__":
    unittest.main()
