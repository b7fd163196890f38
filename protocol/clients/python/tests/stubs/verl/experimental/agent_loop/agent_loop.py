"""verl's agent loop (verl/experimental/agent_loop/agent_loop.py): output, base, and their use."""

import asyncio
import math
from dataclasses import dataclass, field
from typing import Any


@dataclass
class AgentLoopOutput:
    """In verl a pydantic model: a wrong type is refused there as here."""

    prompt_ids: list[int]
    response_ids: list[int]
    response_mask: list[int]
    metrics: dict[str, float]
    response_logprobs: list[float] | None = None
    multi_modal_data: dict[str, Any] | None = None
    reward_score: float | None = None
    num_turns: int = 0
    extra_fields: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for ids in (self.prompt_ids, self.response_ids, self.response_mask):
            assert isinstance(ids, list) and all(type(one) is int for one in ids)
        assert set(self.metrics) <= {"generate_sequences", "tool_calls", "num_preempted"}
        assert all(type(value) is float for value in self.metrics.values())
        assert self.reward_score is None or type(self.reward_score) is float


class AgentLoopBase:
    def __init__(
        self,
        trainer_config: Any,
        server_manager: Any,
        tokenizer: Any,
        processor: Any,
        **kwargs: Any,
    ):
        assert not kwargs, f"unknown settings of the agent loop: {sorted(kwargs)}"
        self.config = trainer_config.config


class AgentLoopWorker:
    """What `generate_sequences` does: every row a task of its own, then one padded batch."""

    def __init__(self, config: Any, build: Any):
        self.config, self.build = config, build

    async def generate_sequences(
        self, rows: list[dict[str, Any]], validate: bool = False
    ) -> list[AgentLoopOutput]:
        rollout = self.config.actor_rollout_ref.rollout
        sampling = {
            "temperature": rollout.val_kwargs.temperature if validate else rollout.temperature,
            "top_p": rollout.val_kwargs.top_p if validate else rollout.top_p,
            "repetition_penalty": 1.0,
            "logprobs": rollout.calculate_log_probs,
        }
        tasks = [asyncio.create_task(self._run_agent_loop(sampling, row)) for row in rows]
        outputs = await asyncio.gather(*tasks)
        self._postprocess(outputs)
        return outputs

    async def _run_agent_loop(self, sampling: dict[str, Any], row: dict[str, Any]) -> Any:
        return await self.build().run(sampling, **row)

    def _postprocess(self, outputs: list[AgentLoopOutput]) -> None:
        """The shapes that verl's padding and concatenation need."""
        rollout = self.config.actor_rollout_ref.rollout
        for output in outputs:
            assert 0 < len(output.prompt_ids) <= rollout.prompt_length
            assert 0 < len(output.response_ids) <= rollout.response_length
            assert len(output.response_mask) == len(output.response_ids)
            # Present in the first row means present in all.
            assert output.response_logprobs is not None
            assert len(output.response_logprobs) == len(output.response_ids)
            for bit, logprob in zip(output.response_mask, output.response_logprobs, strict=True):
                assert logprob <= 0.0 if bit else logprob == 0.0
            # One score missing, and verl takes none of them.
            assert output.reward_score is not None
            extra = output.extra_fields["reward_extra_info"]
            assert set(extra) == set(outputs[0].extra_fields["reward_extra_info"])
            assert all(type(value) is float for value in extra.values())


def scores_of(outputs: list[AgentLoopOutput]) -> list[float]:
    return [math.nan if one.reward_score is None else one.reward_score for one in outputs]
