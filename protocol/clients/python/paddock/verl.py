"""verl: an agent loop that plays on the server, the repeats of a prompt as one group.

Named in the file of `actor_rollout_ref.rollout.agent.agent_loop_config_path`:

    - name: paddock
      _target_: paddock.verl.PaddockAgentLoop
      batch: {reward: {reads: [score]}}

A row of the data set says what to play in `extra_info["paddock"]`, in the form of `tasks` of a
batch request, and in `extra_info["paddock_eval"]` whether it is for validation. The loop is made
for `algorithm.adv_estimator=paddock` (paddock/verl_advantage.py).
Interface: verl/experimental/agent_loop/agent_loop.py.
"""

import asyncio
import logging
import math
import threading
import uuid
from collections.abc import Mapping
from typing import Any

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput

from paddock.client import Client
from paddock.rows import Row, episode_rows, is_scored
from paddock.verl_pass import Pass, Settle
from paddock.wire import Group

logger = logging.getLogger("paddock")

# Where a member has nothing to train on, verl still wants a prompt and a response: a masked id.
PLACEHOLDER_IDS = [0]

# Estimators that give the turns of one chain advantages of their own: verl's one score for a row
# cannot carry them.
TURN_ESTIMATORS = ("gigpo",)


class PaddockAgentLoop(AgentLoopBase):  # type: ignore[misc, unused-ignore]
    """One instance a call, as verl has it; calls that began together meet in a Pass."""

    def __init__(
        self,
        *args: Any,
        url: str | None = None,
        token: str | None = None,
        batch: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ):
        """
        Args:
            url, token: as of paddock.Client.
            batch: what every batch request has: policy, reward, advantage, limits, groups.

        Raises:
            ValueError: for an estimator that gives turns their own advantages.
        """
        super().__init__(*args, **kwargs)
        self._client = Client(url, token)
        self._batch: Any = _plain(batch or {})
        estimator = self._batch.get("advantage", {}).get("estimator")
        if estimator in TURN_ESTIMATORS:
            raise ValueError(
                f"batch.advantage.estimator: expected one advantage an episode, found {estimator}, "
                "which gives one a turn; verl has one score a row: use grpo, rloo or gdpo"
            )

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> Any:
        """Plays one member of the group of `kwargs["uid"]`.

        `reward_score` is the server's advantage, and 0.0 for a failed member, whose response mask
        is all zero. In validation it is the reward, and NaN for a failed member.

        Raises:
            ValueError: for a prompt longer than `rollout.prompt_length`, a row without
                `extra_info["paddock"]`, or one that does not say whether it is for validation
                where the sampling does not tell either.
        """
        task = _task(kwargs)
        trains = self._trains(sampling_params, kwargs["extra_info"].get("paddock_eval"))
        uid = str(kwargs.get("uid") or uuid.uuid4())
        joined, place = Pass.join(uid, task, trains)
        if joined.playing is None:
            joined.playing = asyncio.create_task(self._play_pass(joined, sampling_params, trains))
        try:
            # The repeats of a prompt wait for one future: cancelling one call must not cancel it.
            group = await asyncio.shield(joined.groups[uid])
        except asyncio.CancelledError:
            joined.leave()
            if joined.abandoned:
                self._client.give_up(*joined.batches)
            raise
        return self._output(group, place, trains)

    async def _play_pass(self, joined: Pass, sampling: dict[str, Any], trains: bool) -> None:
        """One batch for each group size: there is one, unless verl split a prompt's repeats."""
        await joined.complete()
        if joined.abandoned:
            return
        try:
            self._start(joined, sampling, trains)
        except Exception as error:
            joined.settle(list(joined.groups)).rest(error)

    def _start(self, joined: Pass, sampling: dict[str, Any], trains: bool) -> None:
        repeats = self._rollout.n
        for size, uids in joined.by_size().items():
            if trains and size != repeats:
                logger.warning(
                    "%s groups have %s members where rollout.n=%s: the repeats of a prompt were "
                    "split over workers; let data.train_batch_size be a multiple of "
                    "rollout.agent.num_workers",
                    len(uids),
                    size,
                    repeats,
                )
            tasks = [_named(joined.tasks[uid], uid) for uid in uids]
            request = self._request(sampling, tasks, size, trains)
            joined.batches.append(request["id"])
            # A thread waits for the groups of each batch; batches are passes of the event loop, so
            # few. The process may end without it.
            threading.Thread(
                target=self._play,
                args=(request, joined, joined.settle(uids)),
                name="paddock-groups",
                daemon=True,
            ).start()

    def _request(
        self, sampling_params: dict[str, Any], tasks: list[Any], size: int, trains: bool
    ) -> dict[str, Any]:
        policy = self._batch.get("policy", {})
        sampling = {
            "temperature": sampling_params["temperature"],
            "top_p": sampling_params["top_p"],
            "max_tokens": self._rollout.response_length,
            **policy.get("sampling", {}),
        }
        return {
            **self._batch,
            "mode": "train" if trains else "eval",
            "id": f"verl-{uuid.uuid4().hex}",
            "tasks": tasks,
            "group_size": size,
            "policy": {**policy, "sampling": sampling},
        }

    def _play(self, request: dict[str, Any], joined: Pass, settle: Settle) -> None:
        """Settles each prompt with its group, and with None what the server dropped."""
        try:
            batch_id = self._client.submit(request)["id"]
            if joined.abandoned:
                return self._client.give_up(batch_id)
            with self._client.cancelling(batch_id), self._client.groups(batch_id) as groups:
                for group in groups:
                    settle.group(group["metadata"]["verl_uid"], group)
            for one in self._client.progress(batch_id)["groups"]["dropped"]:
                logger.warning("%s was dropped, %s: %s", one["task"], one["verdict"], one["reason"])
            settle.rest(None)
        except BaseException as error:
            settle.rest(error)

    @property
    def _rollout(self) -> Any:
        return self.config.actor_rollout_ref.rollout

    def _trains(self, sampling_params: dict[str, Any], evaluates: Any) -> bool:
        """The row says it; else the sampling, by which alone verl tells a loop of validation."""
        if evaluates is not None:
            return not evaluates
        rollout = self._rollout
        training = (rollout.temperature, rollout.top_p)
        validation = (rollout.val_kwargs.temperature, rollout.val_kwargs.top_p)
        if training == validation:
            raise ValueError(
                f"expected rollout and rollout.val_kwargs to differ, found temperature and top_p "
                f"{training} in both, so that training and validation look the same; say in every "
                'row extra_info["paddock_eval"], true or false, or change val_kwargs'
            )
        return (sampling_params["temperature"], sampling_params["top_p"]) == training

    def _output(self, group: Group | None, place: int, trains: bool) -> Any:
        episode = group["episodes"][place] if group else None
        rows = episode_rows(group, episode) if group and episode else []
        kept = _kept(rows)
        prompt_ids, response = _split(kept, self._rollout)
        reward = _number(episode and episode["reward"], math.nan)
        advantage = kept.advantage if kept else 0.0
        seconds = group["cost"]["seconds"] / group["stats"]["n"] if group else 0.0
        versions = kept.versions if kept else []
        return AgentLoopOutput(
            prompt_ids=prompt_ids,
            response_ids=response["ids"],
            response_mask=response["mask"],
            response_logprobs=response["logprobs"],
            reward_score=advantage if trains else reward,
            num_turns=2 * len(episode["turns"]) if episode else 0,
            metrics={"generate_sequences": seconds, "tool_calls": 0.0},
            # The same keys in every row, numbers in reward_extra_info: verl makes arrays of them.
            extra_fields={
                "reward_extra_info": {
                    # "reward" is verl's own word for the score (ray_trainer.py, _validate).
                    "paddock_reward": reward,
                    "failed": 0.0 if episode and is_scored(episode) else 1.0,
                    "untrained_tokens": float(_trained(rows) - sum(response["mask"])),
                },
                "param_version_start": min(versions, default=None),
                "param_version_end": max(versions, default=None),
                "paddock_episode": episode["id"] if episode else None,
                "paddock_outcome": episode["outcome"] if episode else "dropped",
            },
        )


def _task(kwargs: dict[str, Any]) -> Any:
    task = (kwargs.get("extra_info") or {}).get("paddock")
    if not isinstance(task, Mapping):
        raise ValueError(
            f'expected extra_info["paddock"] with what to play, found {task!r}; '
            'write {"task": "<pack>/<task>"} there in the data set'
        )
    return _plain(task)


def _named(task: Any, uid: str) -> Any:
    return {**task, "metadata": {**task.get("metadata", {}), "verl_uid": uid}}


def _kept(rows: list[Row]) -> Row | None:
    """verl takes one row a call: of an episode of several, the one with the most trained ids."""
    return max(reversed(rows), key=lambda row: sum(row.mask), default=None)


def _number(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else float(value)


def _trained(rows: list[Row]) -> int:
    return sum(sum(row.mask) for row in rows)


def _split(row: Row | None, rollout: Any) -> tuple[list[int], dict[str, list[Any]]]:
    if row is None:
        return list(PLACEHOLDER_IDS), {"ids": list(PLACEHOLDER_IDS), "mask": [0], "logprobs": [0.0]}
    if row.prompt_length > rollout.prompt_length:
        raise ValueError(
            f"episode {row.episode}: its prompt has {row.prompt_length} ids, expected at most "
            f"rollout.prompt_length={rollout.prompt_length}; raise it"
        )
    # What is too long for verl's tensors is cut at the end: what is left was sampled without it.
    response = slice(row.prompt_length, row.prompt_length + rollout.response_length)
    return row.ids[: row.prompt_length], {
        "ids": row.ids[response],
        "mask": row.mask[response],
        "logprobs": row.logprobs[response],
    }


def _plain(value: Any) -> Any:
    """Hydra's and numpy's containers as what JSON knows."""
    if hasattr(value, "items"):
        return {str(key): _plain(one) for key, one in value.items()}
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, str | int | float) or value is None:
        return value
    return [_plain(one) for one in value]
