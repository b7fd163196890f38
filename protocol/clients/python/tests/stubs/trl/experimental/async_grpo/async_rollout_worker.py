"""TRL's RolloutSample (trl/experimental/async_grpo/async_rollout_worker.py of 1.16)."""

from dataclasses import dataclass

import numpy as np

Messages = list[dict[str, str]]


@dataclass(slots=True)
class RolloutSample:
    prompt: Messages
    completion: Messages
    input_ids: np.ndarray
    completion_mask: np.ndarray
    old_log_probs: np.ndarray
    advantage: float
    model_version: int
    group_id: int
    metrics: dict[str, float]
    enqueued_at: float | None = None
