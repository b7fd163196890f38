"""verl: outputs of the agent loop for a batch in which members fail, are truncated, and are cut."""

import asyncio
import math
import threading
import unittest
from types import SimpleNamespace
from typing import Any

from paddock import Client
from tests.support import (
    GROUP_SIZE,
    TROUBLE,
    TROUBLED,
    VERSIONED,
    HouseTest,
    LateOnce,
    request_of,
    set_faults,
    sums,
)

# After tests.support, which lets the stubs be imported.
from paddock.verl import PaddockAgentLoop
from paddock.verl_advantage import spread_scores
from verl.experimental.agent_loop.agent_loop import AgentLoopWorker, scores_of
from verl.tensor import Tensor
from verl.trainer.ppo.ray_trainer import validation_lists


def config(**some: Any) -> Any:
    rollout = {
        "n": GROUP_SIZE,
        "temperature": 1.0,
        "top_p": 1.0,
        "val_kwargs": SimpleNamespace(temperature=0, top_p=1.0, n=1),
        "prompt_length": 512,
        "response_length": 256,
        "calculate_log_probs": True,
        **some,
    }
    return SimpleNamespace(actor_rollout_ref=SimpleNamespace(rollout=SimpleNamespace(**rollout)))


def rows(*numbers: int, repeats: int = GROUP_SIZE) -> list[dict[str, Any]]:
    return [
        {"raw_prompt": [], "uid": f"uid-{number}", "extra_info": {"paddock": task, "index": number}}
        for number, task in zip(numbers, sums(*numbers), strict=True)
        for _ in range(repeats)
    ]


class Recording(Client):
    groups_seen: list[Any]

    def __init__(self) -> None:
        super().__init__()
        self.groups_seen = []
        self.submitted: list[Any] = []
        self.accepted: list[str] = []

    def submit(self, batch: Any) -> Any:
        self.submitted.append(batch)
        accepted = super().submit(batch)
        self.accepted.append(accepted["id"])
        return accepted

    def lease(self, *args: Any, **options: Any) -> Any:
        answer = super().lease(*args, **options)
        self.groups_seen.extend(answer["groups"])
        return answer


class VerlTest(HouseTest):
    def setUp(self) -> None:
        self.client = Recording()

    def generate(
        self, batch: Any, asked: list[Any], validate: bool = False, **some: Any
    ) -> list[Any]:
        settings = config(**some)

        def build() -> Any:
            loop = PaddockAgentLoop(SimpleNamespace(config=settings), None, None, None, batch=batch)
            loop._client = self.client
            return loop

        worker = AgentLoopWorker(settings, build)
        return asyncio.run(worker.generate_sequences(asked, validate))

    def test_a_troubled_group_arrives_aligned_and_its_failed_members_contribute_nothing(
        self,
    ) -> None:
        set_faults(*TROUBLE)
        outputs = self.generate(TROUBLED, rows(0, 1))
        self.assertEqual(len(self.client.submitted), 1)
        groups = {group["metadata"]["verl_uid"]: group for group in self.client.groups_seen}
        self.assert_troubled(groups["uid-0"])
        places = [(uid, place) for uid in ("uid-0", "uid-1") for place in range(GROUP_SIZE)]
        for output, (uid, place) in zip(outputs, places, strict=True):
            episode = groups[uid]["episodes"][place]
            extra = output.extra_fields["reward_extra_info"]
            self.assertEqual(output.extra_fields["paddock_episode"], episode["id"])
            if episode["reward"] is None:
                self.assertEqual((output.response_mask, output.reward_score), ([0], 0.0))
                self.assertEqual(extra["failed"], 1.0)
                self.assertTrue(math.isnan(extra["paddock_reward"]))
                continue
            # Of a cut episode the chain with the most trained ids; the rest is counted.
            [*_, sample] = sorted(episode["samples"], key=lambda one: sum(one["mask"]))
            start = sample["prompt_length"]
            self.assertEqual(output.prompt_ids, list(sample["ids"][:start]))
            self.assertEqual(output.response_ids, list(sample["ids"][start:]))
            self.assertEqual(output.response_mask, list(sample["mask"][start:]))
            self.assertEqual(output.response_logprobs, list(sample["logprobs"][start:]))
            sampled = sum(sum(one["mask"]) for one in episode["samples"])
            self.assertEqual(extra["untrained_tokens"], sampled - sum(sample["mask"]))
            self.assertEqual(output.reward_score, episode["advantage"])
            self.assertEqual((extra["paddock_reward"], extra["failed"]), (episode["reward"], 0.0))
            self.assertEqual(output.extra_fields["param_version_start"], 3)
            self.assertEqual(output.num_turns, 2 * len(episode["turns"]))

    def test_the_estimator_spreads_scores_over_trained_tokens_and_gives_failed_members_none(
        self,
    ) -> None:
        scores, mask = Tensor([[0.5], [-1.0], [0.0]]), Tensor([[1, 0, 1], [1, 1, 0], [0, 0, 0]])
        advantages, returns = spread_scores(scores, mask, index=["a", "a", "a"], config=None)
        self.assertEqual(advantages.rows, [[0.5, 0.0, 0.5], [-1.0, -1.0, 0.0], [0.0, 0.0, 0.0]])
        self.assertEqual(returns.rows, advantages.rows)

    def test_the_first_and_last_version_of_a_row_stand_beside_it(self) -> None:
        outputs = self.generate(VERSIONED, rows(0, repeats=4), n=4)
        stamps = {
            (one.extra_fields["param_version_start"], one.extra_fields["param_version_end"])
            for one in outputs
        }
        self.assertEqual(stamps, {(7, 7)})

    def test_in_validation_the_score_is_the_reward(self) -> None:
        outputs = self.generate({}, rows(0, repeats=2), validate=True)
        self.assertEqual(self.client.submitted[0]["mode"], "eval")
        lists = validation_lists(outputs, scores_of(outputs))
        rewards = lists["paddock_reward"]
        self.assertEqual(lists["reward"], rewards)
        # At temperature 0 the simulator takes its heaviest plan, the correct one.
        self.assertEqual(rewards, [1.0, 1.0])

    def test_where_both_samplings_are_equal_each_row_says_whether_it_is_for_validation(
        self,
    ) -> None:
        equal = {"n": 2, "val_kwargs": SimpleNamespace(temperature=1.0, top_p=1.0, n=1)}
        with self.assertRaisesRegex(ValueError, "paddock_eval"):
            self.generate({}, rows(0, repeats=2), **equal)
        for evaluates, mode in ((True, "eval"), (False, "train")):
            told = rows(0, repeats=2)
            for row in told:
                row["extra_info"]["paddock_eval"] = evaluates
            self.generate({}, told, validate=evaluates, **equal)
            self.assertEqual(self.client.submitted[-1]["mode"], mode)

    def test_an_estimator_with_an_advantage_for_each_turn_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "gigpo"):
            self.generate({"advantage": {"estimator": "gigpo"}}, rows(0, repeats=2), n=2)

    def test_a_group_that_is_delivered_twice_answers_its_calls_once(self) -> None:
        self.client = client = LateOnce()  # type: ignore[assignment]
        with self.assertLogs("paddock", "WARNING"):
            outputs = self.generate(VERSIONED, rows(0, repeats=2), n=2)
            # The second delivery comes after the answers.
            for thread in threading.enumerate():
                if thread.name == "paddock-groups":
                    thread.join(20)
        self.assertEqual(client.deliveries, [1, 2])
        self.assertEqual(len(outputs), 2)
        settled = client.progress(client.batch_id)["groups"]["settled"]
        self.assertEqual(settled, {"acked": 1})

    def test_a_cancelled_loop_cancels_its_batch_and_lets_the_process_end(self) -> None:
        set_faults({"kind": "hang"})
        settings = config(n=2)

        def build() -> Any:
            loop = PaddockAgentLoop(SimpleNamespace(config=settings), None, None, None)
            loop._client = self.client
            return loop

        async def play() -> None:
            worker = AgentLoopWorker(settings, build)
            playing = asyncio.create_task(worker.generate_sequences(rows(0, repeats=2)))
            while not self.client.accepted:
                await asyncio.sleep(0)
            playing.cancel()
            await playing

        with self.assertRaises(asyncio.CancelledError):
            asyncio.run(play())
        [batch_id] = self.client.accepted
        self.assertEqual(self.client.progress(batch_id)["state"], "cancelled")
        waiting = [one for one in threading.enumerate() if one is not threading.main_thread()]
        self.assertEqual([one.name for one in waiting if not one.daemon], [])

    def test_in_validation_a_failed_member_has_no_number(self) -> None:
        set_faults({"kind": "notokens"})
        batch = {"groups": {"attempts": 1}}
        [output] = self.generate(batch, rows(0, repeats=1), validate=True)
        self.assertTrue(math.isnan(output.reward_score))

    def test_every_member_of_a_dropped_group_is_masked_and_the_log_says_why(self) -> None:
        set_faults({"kind": "notokens", "match": request_of(0)})
        with self.assertLogs("paddock", "WARNING") as log:
            outputs = self.generate({"groups": {"attempts": 1}}, rows(0, 1, repeats=2), n=2)
        self.assertIn("sum-0", log.output[0])
        self.assertIn("token_ids", log.output[0])
        self.assertEqual(
            [sum(one.response_mask) > 0 for one in outputs], [False, False, True, True]
        )
        dropped = [one.extra_fields["paddock_outcome"] for one in outputs[:2]]
        self.assertEqual(dropped, ["dropped", "dropped"])

    def test_repeats_that_were_split_over_workers_are_smaller_groups_and_a_warning(self) -> None:
        with self.assertLogs("paddock", "WARNING") as log:
            self.generate({}, rows(0, repeats=3) + rows(1, repeats=2), n=3)
        self.assertIn("num_workers", log.output[0])
        self.assertEqual(sorted(one["group_size"] for one in self.client.submitted), [2, 3])

    def test_a_response_that_is_too_long_for_verl_is_cut_at_its_end(self) -> None:
        outputs = self.generate(VERSIONED, rows(0, repeats=4), n=4, response_length=30)
        for output in outputs:
            self.assertEqual(len(output.response_ids), 30)
            self.assertEqual(output.response_mask, [1] * 30)

    def test_a_prompt_that_is_too_long_for_verl_names_the_setting(self) -> None:
        with self.assertRaisesRegex(ValueError, "rollout.prompt_length=8"):
            self.generate({}, rows(0, repeats=2), n=2, prompt_length=8)

    def test_a_refused_batch_is_raised_by_every_call(self) -> None:
        with self.assertRaisesRegex(Exception, "scor"):
            self.generate({"reward": {"reads": ["scor"]}}, rows(0, repeats=2), n=2)

    def test_a_row_that_does_not_say_what_to_play_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "extra_info"):
            self.generate({}, [{"uid": "u", "extra_info": {"index": 0}}], n=1)


if __name__ == "__main__":
    unittest.main()
