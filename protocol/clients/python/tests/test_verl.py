"""verl: outputs of the agent loop for a batch in which members fail, are truncated, and are cut."""

import asyncio
import math
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
    request_of,
    set_faults,
    sums,
)

# After tests.support, which lets the stubs be imported.
from paddock.verl import PaddockAgentLoop
from paddock.verl_advantage import spread_scores
from verl.experimental.agent_loop.agent_loop import AgentLoopWorker
from verl.tensor import Tensor


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

    def submit(self, batch: Any) -> Any:
        self.submitted.append(batch)
        return super().submit(batch)

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
                self.assertEqual((extra["failed"], math.isnan(extra["reward"])), (1.0, True))
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
            self.assertEqual((extra["reward"], extra["failed"]), (episode["reward"], 0.0))
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
        rewards = [one.extra_fields["reward_extra_info"]["reward"] for one in outputs]
        self.assertEqual([one.reward_score for one in outputs], rewards)
        # At temperature 0 the simulator takes its heaviest plan, the correct one.
        self.assertEqual(rewards, [1.0, 1.0])

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
