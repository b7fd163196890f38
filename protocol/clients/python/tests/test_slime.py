"""slime: samples and train data of a batch in which members fail, are truncated, and are cut."""

import math
from types import SimpleNamespace
from typing import Any
from unittest import mock

from paddock import BatchPaused, Client
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
from paddock.slime import generate_rollout, post_process_rewards
from slime.rollout_manager import (
    DataSource,
    convert_samples_to_train_data,
    evaluate,
    generate,
    token_weights,
)
from slime.utils.types import Sample

Status = Sample.Status


def flags(**some: Any) -> Any:
    return SimpleNamespace(
        **{
            "rollout_function_path": "paddock.slime.generate_rollout",
            "custom_reward_post_process_path": "paddock.slime.post_process_rewards",
            "rollout_batch_size": 2,
            "n_samples_per_prompt": GROUP_SIZE,
            "rollout_temperature": 1.0,
            "rollout_top_p": 1.0,
            "rollout_max_response_len": 200,
            "reward_key": None,
            "calculate_per_token_loss": False,
            "paddock_batch": TROUBLED,
            **some,
        }
    )


def source(args: Any, *numbers: int) -> DataSource:
    rows = [{"prompt": "", "metadata": {"paddock": task, "own": 1}} for task in sums(*numbers)]
    return DataSource(args, rows)


def told(sample: Any) -> dict[str, Any]:
    return dict(sample.metadata["paddock"])


class SlimeTest(HouseTest):
    def test_a_troubled_group_arrives_aligned_and_its_failed_members_contribute_nothing(
        self,
    ) -> None:
        set_faults(*TROUBLE)
        args = flags()
        samples, data = generate(args, 7, source(args, 0, 1))
        by_episode: dict[str, list[Any]] = {}
        for sample in samples:
            by_episode.setdefault(told(sample)["episode"], []).append(sample)
        self.assertEqual(len(by_episode), 2 * GROUP_SIZE)
        failed = [one for one in samples if told(one)["reward"] is None]
        truncated = [one for one in samples if told(one)["outcome"] == "ok_truncated"]
        cut = [same for same in by_episode.values() if len(same) > 1]
        self.assertTrue(failed and truncated and cut)

        for sample in samples:
            # The tokens are the server's, the response is their tail.
            mask, response = sample.loss_mask, sample.tokens[-sample.response_length :]
            self.assertEqual(len(mask), len(response))
            self.assertEqual(sample.metadata["own"], 1)
        for sample in truncated:
            self.assertEqual(sample.status, Status.TRUNCATED)
            self.assertEqual(sum(sample.loss_mask), 200)
        for same in cut:
            self.assertEqual(len({(one.index, one.rollout_id) for one in same}), 1)
            self.assertEqual(len({told(one)["advantage"] for one in same}), 1)
            # slime divides by the ids of the whole episode, not by those of each sample.
            total = sum(sum(one.loss_mask) for one in same)
            at = samples.index(same[0])
            self.assertEqual(data["rollout_mask_sums"][at], total)
        for sample in samples:
            expected = [] if told(sample)["reward"] is None else ["3"]
            self.assertEqual(sorted(set(sample.weight_versions)), expected)
        self.assertEqual(len(data["rollout_log_probs"]), len(samples))

        for sample in failed:
            at = samples.index(sample)
            self.assertEqual(sample.status, Status.FAILED)
            self.assertTrue(sample.remove_sample)
            self.assertEqual(sum(data["loss_masks"][at]), 0)
            self.assertEqual(data["rewards"][at], 0.0)
        scored = [same[0] for same in by_episode.values() if told(same[0])["reward"] is not None]
        self.assert_advantages_of_scored_alone(scored)
        # The mean over the scored rollouts of each one's mean over its trained ids.
        weights = token_weights(args, data)
        for sample, weight in zip(samples, weights, strict=True):
            total = max(data["rollout_mask_sums"][samples.index(sample)], 1)
            advantage = told(sample)["advantage"] or 0.0
            self.assertAlmostEqual(weight, advantage / total / len(scored), places=12)

    def assert_advantages_of_scored_alone(self, samples: list[Any]) -> None:
        """GRPO over the scored members of each group: (r - mean) / (std + 1e-6), std unbiased."""
        groups: dict[str, list[Any]] = {}
        for sample in samples:
            groups.setdefault(told(sample)["group"], []).append(told(sample))
        for members in groups.values():
            self.assertLess(len(members), GROUP_SIZE)
            rewards = [one["reward"] for one in members]
            mean = sum(rewards) / len(rewards)
            square = sum((one - mean) ** 2 for one in rewards)
            std = math.sqrt(square / (len(rewards) - 1))
            for one in members:
                self.assertAlmostEqual(one["advantage"], (one["reward"] - mean) / (std + 1e-6), 6)

    def test_the_mean_over_raw_rewards_is_that_of_the_scored_members(self) -> None:
        def sample(episode: str, reward: float | None, advantage: float | None) -> Any:
            told = {"episode": episode, "reward": reward, "advantage": advantage}
            return Sample(metadata={"paddock": told})

        # Of three episodes one has two chains and one failed: the mean is 1.0 and 0.5, once each,
        # and the loss is divided by three where two are in it.
        samples = [
            sample("a", 1.0, 0.5),
            sample("a", 1.0, 0.5),
            sample("b", None, None),
            sample("c", 0.5, -0.5),
        ]
        raw_rewards, rewards = post_process_rewards(flags(), samples)
        self.assertEqual(rewards, [0.75, 0.75, 0.0, -0.75])
        self.assertEqual(raw_rewards, [1.0, 1.0, 0.75, 0.5])
        self.assertEqual(post_process_rewards(flags(), samples[2:3]), ([0.0], [0.0]))

    def test_where_the_loss_is_divided_by_trained_ids_the_advantages_are_the_servers(self) -> None:
        told = [{"reward": 1.0, "advantage": 0.5}, {"reward": None, "advantage": None}]
        samples = [
            Sample(metadata={"paddock": {**one, "episode": str(at)}}) for at, one in enumerate(told)
        ]
        _, rewards = post_process_rewards(flags(calculate_per_token_loss=True), samples)
        self.assertEqual(rewards, [0.5, 0.0])

    def test_versions_of_the_engine_become_weight_versions_one_for_each_call(self) -> None:
        args = flags(paddock_batch=VERSIONED, rollout_batch_size=1, n_samples_per_prompt=4)
        samples, _ = generate(args, 0, source(args, 0))
        calls = {len(one.weight_versions) for one in samples if one.status == Status.COMPLETED}
        self.assertEqual({version for one in samples for version in one.weight_versions}, {"7"})
        # A correct or wrong answer takes one call of the calculator and one last turn.
        self.assertEqual(calls, {2})

    def test_with_a_reward_key_every_reward_is_a_dict_of_the_named_parts(self) -> None:
        set_faults(*TROUBLE)
        args = flags(reward_key="total")
        samples, _ = generate(args, 0, source(args, 0))
        for sample in samples:
            reward = told(sample)["reward"]
            expected = {"total": 0.0} if reward is None else {"total": reward, "score": reward}
            self.assertEqual(sample.reward, expected)

    def test_turns_with_advantages_of_their_own_are_samples_of_one_rollout(self) -> None:
        advantage = {"estimator": "gigpo"}
        args = flags(paddock_batch={**VERSIONED, "advantage": advantage}, rollout_batch_size=1)
        samples, data = generate(args, 0, source(args, 0))
        by_rollout: dict[int, list[Any]] = {}
        for sample in samples:
            by_rollout.setdefault(sample.rollout_id, []).append(sample)
        parted = [same for same in by_rollout.values() if len(same) > 1]
        self.assertTrue(parted)
        for same in parted:
            self.assertEqual(len({tuple(one.tokens) for one in same}), 1)
            # No id is trained twice.
            trained = [sum(bits) for bits in zip(*(one.loss_mask for one in same), strict=True)]
            self.assertEqual(max(trained), 1)
            advantages = [data["rewards"][samples.index(one)] for one in same]
            self.assertEqual(len(set(advantages)), len(same))

    def test_groups_that_the_server_dropped_are_replaced_by_other_prompts(self) -> None:
        set_faults({"kind": "notokens", "match": request_of(1)})
        batch = {**TROUBLED, "groups": {"attempts": 1}}
        args = flags(paddock_batch=batch, n_samples_per_prompt=2)
        output = generate_rollout(args, 0, source(args, 0, 1, 2))
        self.assertEqual([group[0].group_index for group in output.samples], [0, 2])
        self.assertEqual(output.metrics["paddock/dropped_groups"], 1)

    def test_when_no_group_comes_the_error_says_why(self) -> None:
        set_faults({"kind": "badjson"})
        args = flags(paddock_batch={"groups": {"attempts": 1}}, paddock_refills=1)
        args.n_samples_per_prompt = 2
        with self.assertRaisesRegex(RuntimeError, "expected 2 groups, got 0 in 2.*infra_backend"):
            generate_rollout(args, 0, source(args, 0))

    def test_a_batch_that_paused_itself_is_an_error_with_its_words(self) -> None:
        set_faults({"kind": "notokens"})
        args = flags(paddock_batch={"groups": {"attempts": 1}}, n_samples_per_prompt=2)
        with self.assertRaisesRegex(BatchPaused, "contract: .*token_ids"):
            generate_rollout(args, 0, source(args, 0))

    def test_an_evaluation_leaves_failed_members_out(self) -> None:
        set_faults(*TROUBLE)
        tasks = {"tasks": sums(0), "group_size": GROUP_SIZE}
        args = flags(
            paddock_eval={"sums": tasks}, paddock_batch={**TROUBLED, "groups": {"attempts": 1}}
        )
        data = evaluate(args, 0, source(args, 0))["sums"]
        self.assertTrue(0 < len(data["rewards"]) < GROUP_SIZE)
        self.assertIn(True, data["truncated"])
        self.assertEqual(data["rewards"], [told(one)["reward"] for one in data["samples"]])

    def test_what_failed_in_an_evaluation_is_in_the_log_with_its_reason(self) -> None:
        set_faults({"kind": "notokens", "match": request_of(0)})
        batch = {**TROUBLED, "groups": {"attempts": 1}}
        args = flags(paddock_eval={"sums": {"tasks": sums(0, 1)}}, paddock_batch=batch)
        with self.assertLogs("paddock", "WARNING") as log:
            data = evaluate(args, 0, source(args, 0))["sums"]
        self.assertEqual(len(data["rewards"]), 1)
        self.assertRegex(log.output[0], "sum-0 .*token_ids")

    def test_a_group_that_is_delivered_twice_is_trained_on_once(self) -> None:
        client = LateOnce()
        args = flags(n_samples_per_prompt=4, rollout_batch_size=1, paddock_batch=VERSIONED)
        with mock.patch("paddock.slime.Client", lambda *_: client):
            with self.assertLogs("paddock", "WARNING"):
                output = generate_rollout(args, 0, source(args, 0))
        self.assertEqual(client.deliveries, [1, 2])
        self.assertEqual(len(output.samples), 1)

    def test_an_error_while_groups_are_collected_cancels_the_batch(self) -> None:
        set_faults({"kind": "hang"})
        args = flags(n_samples_per_prompt=2)
        submitted: list[str] = []

        def lease(client: Any, batch_id: str, *_: Any, **__: Any) -> Any:
            submitted.append(batch_id)
            raise KeyboardInterrupt

        with mock.patch.object(Client, "lease", lease), self.assertRaises(KeyboardInterrupt):
            generate_rollout(args, 0, source(args, 0))
        self.assertEqual(Client().progress(submitted[0])["state"], "cancelled")

    def test_a_prompt_that_does_not_say_what_to_play_is_refused(self) -> None:
        args = flags()
        with self.assertRaisesRegex(ValueError, "metadata.paddock"):
            generate_rollout(args, 0, DataSource(args, [{"prompt": "2+2?", "metadata": {}}]))

    def test_samples_of_another_rollout_function_are_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "generate_rollout"):
            convert_samples_to_train_data(flags(), [Sample(index=0)])
