"""TRL's RolloutSample (trl/experimental/async_grpo/async_rollout_worker.py)."""

from dataclasses import dataclass

Messages = list[dict[str, str]]


@dataclass(slots=True)
class RolloutSample:
    prompt: Messages
    completion: Messages
    input_ids: list[int]
    completion_mask: list[int]
    old_log_probs: list[float]
    advantage: float
    model_version: int
    group_id: int
    metrics: dict[str, float]
