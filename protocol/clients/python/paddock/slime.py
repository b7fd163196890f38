"""slime: a rollout function, and rewards that are the server's advantages.

    --rollout-function-path paddock.slime.generate_rollout
    --custom-reward-post-process-path paddock.slime.post_process_rewards

Settings come as `args.paddock_*` from the file of `--custom-config-path`:

    paddock_url, paddock_token: as of paddock.Client
    paddock_batch: what every batch request has: policy, reward, advantage, limits, groups
    paddock_eval: {name: {tasks: […], group_size: 1}} for evaluation
    paddock_refills: batches that may replace groups which the server dropped (default 3)

A row of the prompt data says what to play in its metadata: `{"paddock": {"task": "office/…",
"seed": 7}}`, in the form of `tasks` of a batch request. Sample fields: slime/utils/types.py.
"""

import copy
import logging
import uuid
from collections.abc import Mapping
from typing import Any

from paddock.client import Client
from paddock.rows import Row, episode_rows, is_scored
from paddock.wire import Episode, Group

logger = logging.getLogger("paddock")

DEFAULT_REFILLS = 3

# A member without a row still has its place in slime's batch: two ids of which one is a masked
# response.
PLACEHOLDER_IDS = [0, 0]


def generate_rollout(args: Any, rollout_id: int, data_source: Any, evaluation: bool = False) -> Any:
    """Plays `args.rollout_batch_size` groups and returns them as samples, never retokenised.

    A cut token chain makes one episode several samples, which share `index` and `rollout_id`. A
    failed member is one sample with a zero loss mask and `remove_sample`. Groups that the server
    dropped are replaced by new prompts.

    Returns:
        RolloutFnTrainOutput, or RolloutFnEvalOutput with `evaluation`, where failed members are
        left out.

    Raises:
        RuntimeError: where after all refills groups are missing; it says why the server dropped
            them.
    """
    client = Client(getattr(args, "paddock_url", None), getattr(args, "paddock_token", None))
    client.heartbeat(rollout_id)
    if evaluation:
        return _evaluate(args, rollout_id, client)
    from slime.rollout.base_types import RolloutFnTrainOutput

    finished: list[list[Any]] = []
    dropped: list[str] = []
    refills = getattr(args, "paddock_refills", DEFAULT_REFILLS)
    for _ in range(1 + refills):
        missing = args.rollout_batch_size - len(finished)
        if missing == 0:
            break
        prompts = data_source.get_samples(missing)
        for group in _play(client, _train_batch(args, rollout_id, prompts), dropped):
            finished.append(_group_samples(args, group, prompts[group["metadata"]["slime_group"]]))
    if len(finished) < args.rollout_batch_size:
        raise RuntimeError(
            f"rollout {rollout_id}: expected {args.rollout_batch_size} groups, got "
            f"{len(finished)} in {1 + refills} batches; "
            f"the server dropped: {'; '.join(dropped[-5:]) or 'none'}"
        )
    finished.sort(key=lambda samples: samples[0].index)
    return RolloutFnTrainOutput(samples=finished, metrics=_metrics(finished, dropped))


def post_process_rewards(args: Any, samples: list[Any]) -> tuple[list[float], list[float]]:
    """Rewards for the log, and the advantages as what slime spreads over the response.

    A failed member has advantage 0 beside its zero mask. Its raw reward is the mean over the scored
    episodes, so that it moves no mean over the raw rewards. slime divides the loss of a step by its
    rollouts, failed ones too (loss.py, step_global_batch_size): the advantages are scaled by
    rollouts / scored ones, so that what is divided by is the scored ones. Not with
    `--calculate-per-token-loss`, which divides by the trained ids. Takes the place of slime's own
    normalisation (ray/rollout.py).

    Raises:
        ValueError: for a sample that `generate_rollout` did not make.
    """
    told = [_told(sample) for sample in samples]
    episodes = {one["episode"]: one["reward"] for one in told}
    scored = [reward for reward in episodes.values() if reward is not None]
    mean = sum(scored) / len(scored) if scored else 0.0
    raw_rewards = [mean if one["reward"] is None else one["reward"] for one in told]
    per_token = getattr(args, "calculate_per_token_loss", False)
    scale = 1.0 if per_token or not scored else len(episodes) / len(scored)
    return raw_rewards, [scale * (one["advantage"] or 0.0) for one in told]


def _train_batch(args: Any, rollout_id: int, prompts: list[list[Any]]) -> dict[str, Any]:
    tasks = []
    for number, [prompt, *_] in enumerate(prompts):
        task = (prompt.metadata or {}).get("paddock")
        if not isinstance(task, Mapping):
            raise ValueError(
                f"prompt group {prompt.group_index}: expected metadata.paddock with what to play, "
                f"found {task!r}; write "
                '{"paddock": {"task": "<pack>/<task>"}} into the metadata of the prompt data'
            )
        tasks.append({**task, "metadata": {**task.get("metadata", {}), "slime_group": number}})
    sampling = {
        "temperature": args.rollout_temperature,
        "top_p": args.rollout_top_p,
        "max_tokens": args.rollout_max_response_len,
    }
    return _batch(args, f"slime-{rollout_id}", tasks, args.n_samples_per_prompt, sampling)


def _batch(
    args: Any, name: str, tasks: list[Any], group_size: int, sampling: dict[str, Any]
) -> dict[str, Any]:
    """A batch request. `paddock_batch` goes before slime's own sampling flags."""
    base = getattr(args, "paddock_batch", None) or {}
    policy = base.get("policy", {})
    # A trainer that starts anew plays the same step again: the id must be another one.
    return {
        **base,
        "id": f"{name}-{uuid.uuid4().hex[:12]}",
        "tasks": tasks,
        "group_size": group_size,
        "policy": {**policy, "sampling": {**sampling, **policy.get("sampling", {})}},
    }


def _play(client: Client, batch: dict[str, Any], dropped: list[str]) -> list[Group]:
    """All groups of a batch that the server delivers; the reasons of the others go to `dropped`."""
    batch_id = client.submit(batch)["id"]
    with client.cancelling(batch_id), client.groups(batch_id, max=4) as groups:
        # After a late ack a group comes again.
        delivered = list({group["id"]: group for group in groups}.values())
    for group in client.progress(batch_id)["groups"]["dropped"]:
        dropped.append(f"{group['task']} {group['verdict']}: {group['reason']}")
    return delivered


def _group_samples(args: Any, group: Group, prompts: list[Any]) -> list[Any]:
    return [
        sample
        for episode, prompt in zip(group["episodes"], prompts, strict=True)
        for sample in _episode_samples(args, group, episode, prompt)
    ]


def _episode_samples(args: Any, group: Group, episode: Episode, prompt: Any) -> list[Any]:
    rows = episode_rows(group, episode)
    samples = [_row_sample(row, prompt) for row in rows] or [_placeholder(prompt)]
    advantages: list[float | None] = [row.advantage for row in rows]
    for sample, advantage in zip(samples, advantages or [episode["advantage"]], strict=True):
        sample.index = sample.rollout_id = prompt.index
        sample.status = _status(type(sample).Status, episode)
        sample.reward = _reward(args, episode)
        sample.remove_sample = not is_scored(episode)
        sample.metadata = {
            **(prompt.metadata or {}),
            "paddock": {
                "group": group["id"],
                "episode": episode["id"],
                "verdict": group["verdict"],
                "contract": group["contract"],
                "outcome": episode["outcome"],
                "reason": episode["reason"],
                "reward": episode["reward"],
                "rewards": episode["rewards"],
                "advantage": advantage,
            },
        }
    return samples


def _row_sample(row: Row, prompt: Any) -> Any:
    sample = copy.deepcopy(prompt)
    sample.tokens = row.ids
    sample.response_length = len(row.ids) - row.prompt_length
    sample.loss_mask = row.mask[row.prompt_length :]
    sample.rollout_log_probs = row.logprobs[row.prompt_length :]
    sample.weight_versions = [str(version) for version in row.versions]
    return sample


def _placeholder(prompt: Any) -> Any:
    """The shape of slime's own coding-agent example for an episode that has nothing to train on."""
    sample = copy.deepcopy(prompt)
    sample.tokens = list(PLACEHOLDER_IDS)
    sample.response_length = 1
    sample.loss_mask = [0]
    sample.rollout_log_probs = [0.0]
    return sample


def _status(statuses: Any, episode: Episode) -> Any:
    by_outcome = {"ok": "COMPLETED", "ok_truncated": "TRUNCATED", "aborted": "ABORTED"}
    return getattr(statuses, by_outcome.get(episode["outcome"], "FAILED"))


def _reward(args: Any, episode: Episode) -> Any:
    """slime wants a number of every sample: 0.0 for none; `metadata.paddock.reward` is None."""
    reward = 0.0 if episode["reward"] is None else episode["reward"]
    key = getattr(args, "reward_key", None)
    if key is None:
        return reward
    named = {name: value for name, value in (episode["rewards"] or {}).items() if value is not None}
    return {key: reward, **named}


def _told(sample: Any) -> dict[str, Any]:
    told = (sample.metadata or {}).get("paddock")
    if not isinstance(told, dict) or "advantage" not in told:
        raise ValueError(
            f"sample {sample.index}: expected metadata.paddock.advantage, found none; "
            "post_process_rewards goes with --rollout-function-path paddock.slime.generate_rollout"
        )
    return told


def _metrics(groups: list[list[Any]], dropped: list[str]) -> dict[str, float]:
    samples = [sample for group in groups for sample in group]
    failed = sum(sample.remove_sample for sample in samples)
    return {
        "paddock/samples": len(samples),
        "paddock/failed_members": failed,
        "paddock/dropped_groups": len(dropped),
    }


def _evaluate(args: Any, rollout_id: int, client: Client) -> Any:
    """One batch for each entry of `paddock_eval`, in the form of slime's own evaluation."""
    from slime.rollout.base_types import RolloutFnEvalOutput
    from slime.utils.types import Sample

    data = {}
    for name, setting in (getattr(args, "paddock_eval", None) or {}).items():
        batch = _batch(
            args, f"slime-eval-{rollout_id}", setting["tasks"], setting.get("group_size", 1), {}
        )
        lost: list[str] = []
        groups = _play(client, {**batch, "mode": "eval"}, lost)
        scored = [(group, one) for group in groups for one in group["episodes"] if is_scored(one)]
        samples = [
            _episode_samples(args, group, episode, Sample(index=number))[-1]
            for number, (group, episode) in enumerate(scored)
        ]
        data[name] = {
            "rewards": [episode["reward"] for _, episode in scored],
            "truncated": [episode["outcome"] == "ok_truncated" for _, episode in scored],
            "samples": samples,
        }
        lost += [
            f"{group['task']} {one['outcome']}: {one['reason']}"
            for group in groups
            for one in group["episodes"]
            if not is_scored(one)
        ]
        if lost:
            logger.warning(
                "evaluation %s: %s failed and are in no mean, as %s",
                name,
                len(lost),
                "; ".join(lost[:5]),
            )
    return RolloutFnEvalOutput(data=data)
