"""What slime does with a rollout: slime/ray/rollout.py, from the flags to the train data."""

import argparse
import copy
import importlib
import json
import sys
from typing import Any

from block_yaml import read_yaml
from slime.rollout.base_types import RolloutFnEvalOutput, RolloutFnTrainOutput
from slime.utils.types import Sample


def load_function(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


class DataSource:
    """RolloutDataSource: each prompt `n_samples_per_prompt` times, numbered over the whole run."""

    def __init__(self, args: Any, rows: list[dict[str, Any]]):
        self.args, self.rows = args, rows
        self.offset = self.group_index = self.sample_index = 0

    def get_samples(self, num_samples: int) -> list[list[Sample]]:
        groups = []
        for _ in range(num_samples):
            row = self.rows[self.offset % len(self.rows)]
            self.offset += 1
            group = []
            for _ in range(self.args.n_samples_per_prompt):
                sample = Sample(prompt=row["prompt"], metadata=copy.deepcopy(row["metadata"]))
                sample.group_index, sample.index = self.group_index, self.sample_index
                self.sample_index += 1
                group.append(sample)
            self.group_index += 1
            groups.append(group)
        return groups


def generate(args: Any, rollout_id: int, source: DataSource) -> tuple[list[Sample], dict[str, Any]]:
    """One training rollout: flat samples, and the train data that is made of them."""
    rollout = load_function(args.rollout_function_path)
    output = rollout(args, rollout_id, source, evaluation=False)
    assert isinstance(output, RolloutFnTrainOutput)
    data: list[Any] = output.samples
    while isinstance(data[0], list):
        data = [sample for group in data for sample in group]
    return data, convert_samples_to_train_data(args, data)


def evaluate(args: Any, rollout_id: int, source: DataSource) -> dict[str, dict[str, Any]]:
    output = load_function(args.rollout_function_path)(args, rollout_id, source, evaluation=True)
    assert isinstance(output, RolloutFnEvalOutput)
    for dataset in output.data.values():
        assert len(dataset["rewards"]) == len(dataset["truncated"]) == len(dataset["samples"])
    return output.data


def convert_samples_to_train_data(args: Any, samples: list[Sample]) -> dict[str, Any]:
    """The checks and the keys of slime's function of this name."""
    post_process = load_function(args.custom_reward_post_process_path)
    raw_rewards, rewards = post_process(args, samples)
    assert len(raw_rewards) == len(rewards) == len(samples)
    loss_masks = []
    for sample in samples:
        check_sample(args, sample)
        if sample.loss_mask is None:
            sample.loss_mask = [1] * sample.response_length
        assert len(sample.loss_mask) == sample.response_length
        if sample.remove_sample:
            sample.loss_mask = [0] * sample.response_length
        loss_masks.append(sample.loss_mask)
    sums: dict[int, int] = {}
    for sample in samples:
        assert sample.rollout_id is not None and sample.loss_mask is not None
        sums[sample.rollout_id] = sums.get(sample.rollout_id, 0) + sum(sample.loss_mask)
    data = {
        "tokens": [sample.tokens for sample in samples],
        "response_lengths": [sample.response_length for sample in samples],
        "rewards": rewards,
        "raw_reward": raw_rewards,
        "truncated": [int(sample.status == Sample.Status.TRUNCATED) for sample in samples],
        "sample_indices": [sample.index for sample in samples],
        "rollout_ids": [sample.rollout_id for sample in samples],
        "loss_masks": loss_masks,
        "rollout_mask_sums": [sums[sample.rollout_id or 0] for sample in samples],
    }
    # Decided by the first sample alone: one without would be an error far from its cause.
    if samples[0].rollout_log_probs is not None:
        data["rollout_log_probs"] = [sample.rollout_log_probs for sample in samples]
    return data


def check_sample(args: Any, sample: Sample) -> None:
    """The constraints of the fields that slime reads."""
    assert isinstance(sample.index, int) and isinstance(sample.rollout_id, int)
    assert isinstance(sample.status, Sample.Status) and sample.status != Sample.Status.PENDING
    value = sample.get_reward_value(args)
    assert isinstance(value, (int, float)) and not isinstance(value, bool), value
    assert all(type(token) is int for token in sample.tokens)
    assert 0 < sample.response_length < len(sample.tokens)
    assert sample.rollout_log_probs is not None and sample.loss_mask is not None
    assert len(sample.rollout_log_probs) == sample.response_length
    for bit, logprob in zip(sample.loss_mask, sample.rollout_log_probs, strict=True):
        assert bit in (0, 1) and type(logprob) is float
        assert logprob <= 0.0 if bit else logprob == 0.0
    assert all(isinstance(version, str) for version in sample.weight_versions)


def token_weights(args: Any, data: dict[str, Any]) -> list[float]:
    """With what factor a trained id of each sample enters the loss of a step (loss.py): its
    rollout's mean over ids and the mean over rollouts, or one mean over all ids.
    """
    if args.calculate_per_token_loss:
        tokens = sum(max(sum(mask), 1) for mask in data["loss_masks"])
        return [reward / tokens for reward in data["rewards"]]
    rollouts = len(set(data["rollout_ids"]))
    return [
        reward / max(total, 1) / rollouts
        for reward, total in zip(data["rewards"], data["rollout_mask_sums"], strict=True)
    ]


def main(argv: list[str]) -> None:
    """`train.py`: all rollouts of a run, and their figures as a line of JSON."""
    # A flag that slime does not have, or no longer has, ends the run.
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("rollout-function-path", "custom-reward-post-process-path"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("custom-config-path", "prompt-data", "input-key", "metadata-key"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("num-rollout", "rollout-batch-size", "n-samples-per-prompt"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--rollout-temperature", type=float, default=1.0)
    parser.add_argument("--rollout-top-p", type=float, default=1.0)
    parser.add_argument("--rollout-max-response-len", type=int, required=True)
    parser.add_argument("--advantage-estimator", choices=["grpo"], required=True)
    parser.add_argument("--num-steps-per-rollout", type=int, required=True)
    parser.add_argument("--calculate-per-token-loss", action="store_true")
    parser.add_argument("--use-tis", action="store_true")
    parser.add_argument("--reward-key", default=None)
    args = parser.parse_args(argv)
    for key, value in read_yaml(args.custom_config_path).items():
        setattr(args, key, value)
    with open(args.prompt_data, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    rows = [{"prompt": line[args.input_key], "metadata": line[args.metadata_key]} for line in lines]
    source = DataSource(args, rows)
    counts = []
    for rollout_id in range(args.num_rollout):
        samples, data = generate(args, rollout_id, source)
        assert "rollout_log_probs" in data or not args.use_tis
        # dp_schedule.py: steps of so many rollouts, whatever the number of their samples.
        rollouts = args.rollout_batch_size * args.n_samples_per_prompt
        assert len(set(data["rollout_ids"])) == rollouts and args.num_steps_per_rollout == 1
        counts.append(len(samples))
    evaluated = {name: len(one["rewards"]) for name, one in evaluate(args, 0, source).items()}
    json.dump({"samples": counts, "evaluated": evaluated}, sys.stdout)
