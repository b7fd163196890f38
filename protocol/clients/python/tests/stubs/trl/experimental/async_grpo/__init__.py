"""TRL's AsyncGRPOTrainer as far as a rollout worker sees it: what it calls, reads and checks."""

import queue
from dataclasses import dataclass
from typing import Any

import numpy as np

from .async_rollout_worker import RolloutSample
from .weight_transfer import VLLMClient, WeightTransferClient


@dataclass
class AsyncGRPOConfig:
    output_dir: str = "out"
    max_steps: int = 1
    per_device_train_batch_size: int = 4
    gradient_accumulation_steps: int = 1
    num_generations: int = 8
    weight_sync_steps: int = 1
    max_staleness: int = 4
    heartbeat_stale_after_s: float = 60.0
    vllm_server_base_url: str = "http://localhost:8000"
    vllm_server_timeout: float = 240.0


class _Model:
    def named_parameters(self) -> list[tuple[str, Any]]:
        return []


class AsyncGRPOTrainer:
    def __init__(
        self,
        model: str,
        reward_funcs: Any,
        args: AsyncGRPOConfig | None = None,
        train_dataset: Any = None,
        rollout_worker: Any = None,
        weight_transfer: Any = None,
    ):
        if train_dataset is None:
            raise ValueError("train_dataset is required for AsyncGRPOTrainer")
        assert all("prompt" in row for row in train_dataset)
        self.args = args or AsyncGRPOConfig()
        self.model = _Model()
        self.rollout_worker = rollout_worker
        client = VLLMClient(self.args.vllm_server_base_url, self.args.vllm_server_timeout)
        # Independent of the worker: one of the user's own still gets its weights from TRL.
        parameters = self.model.named_parameters()
        info = {
            "names": [name for name, _ in parameters],
            "dtype_names": [str(value.dtype) for _, value in parameters],
            "shapes": [list(value.shape) for _, value in parameters],
        }
        self.weight_transfer: Any = weight_transfer or WeightTransferClient(client, info)
        self.rollout_queue = rollout_worker.rollout_buffer
        self.model_version = 0
        self.trained: list[RolloutSample] = []

    def train(self) -> None:
        """The calls and their order: weights first, then the worker, then steps with updates."""
        self.weight_transfer.init_weight_transfer()
        self._sync_weight()
        self.rollout_worker.start()
        try:
            size = self.args.per_device_train_batch_size * self.args.gradient_accumulation_steps
            for step in range(1, self.args.max_steps + 1):
                batch = [self._next() for _ in range(size)]
                collate(batch)
                self.trained.extend(batch)
                self.log()
                if step % self.args.weight_sync_steps == 0:
                    self._sync_weight()
        finally:
            self.rollout_worker.stop()
            self.weight_transfer.destroy()

    def log(self) -> None:
        while True:
            try:
                for key in self.rollout_worker.metrics_queue.get_nowait():
                    assert isinstance(key, str)
            except queue.Empty:
                break

    def _next(self) -> RolloutSample:
        while True:
            try:
                sample: RolloutSample = self.rollout_queue.get(timeout=0.2)
            except queue.Empty:
                self.rollout_worker.check_health(self.args.heartbeat_stale_after_s)
                continue
            staleness = self.model_version - sample.model_version
            assert staleness >= 0, f"version {sample.model_version} at {self.model_version}"
            if staleness <= self.args.max_staleness:
                return sample

    def _sync_weight(self) -> None:
        self.weight_transfer.pause()
        self.weight_transfer.send_weights(iter(()))
        self.weight_transfer.resume()
        self.model_version += 1
        self.rollout_worker.update_model_version(self.model_version)


def collate(batch: list[RolloutSample]) -> None:
    """What DataCollatorForRollout reads: one length in a row, one set of metrics in a batch."""
    for sample in batch:
        check_sample(sample)
        assert set(sample.metrics) == set(batch[0].metrics)
    # 1.16 asks the array, 1.9 the built-in.
    counts = [int(sample.completion_mask.sum()) for sample in batch]
    assert counts == [int(sum(sample.completion_mask)) for sample in batch] and min(counts) > 0


def check_sample(sample: RolloutSample) -> None:
    assert type(sample) is RolloutSample
    size = len(sample.input_ids)
    assert len(sample.completion_mask) == len(sample.old_log_probs) == size > 0
    for values in (sample.input_ids, sample.completion_mask, sample.old_log_probs):
        assert isinstance(values, np.ndarray)
    assert all(type(token) is int for token in sample.input_ids.tolist())
    assert set(sample.completion_mask.tolist()) <= {0, 1}
    logprobs = sample.old_log_probs.tolist()
    for bit, logprob in zip(sample.completion_mask, logprobs, strict=True):
        assert type(logprob) is float
        assert logprob <= 0.0 if bit else logprob == 0.0
    assert type(sample.advantage) is float
    assert type(sample.model_version) is int and type(sample.group_id) is int
    assert all(type(value) is float for value in sample.metrics.values())
    for message in [*sample.prompt, *sample.completion]:
        assert isinstance(message["role"], str) and isinstance(message["content"], str)
    assert [one["role"] for one in sample.prompt][-1] == "user"
    assert sample.completion[0]["role"] == "assistant"
