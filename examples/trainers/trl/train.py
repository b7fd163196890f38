# AsyncGRPO on the server's rollouts and advantages.
from datasets import Dataset
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer

from paddock.trl import RolloutWorker

tasks = [{"task": f"arithmetic/sum-{number}"} for number in range(8)]

worker = RolloutWorker(
    tasks,
    group_size=8,
    groups_per_batch=4,
    batch={
        "policy": {"mode": "tokens", "sampling": {"temperature": 1.0, "max_tokens": 512}},
        "reward": {"reads": ["score"]},
        "groups": {"on_short": "close"},
    },
)
trainer = AsyncGRPOTrainer(
    model="Qwen/Qwen3-8B",
    # The server grades, and the data set is only counted: what is played are the worker's tasks.
    reward_funcs=[],
    train_dataset=Dataset.from_list([{"prompt": [{"role": "user", "content": ""}]}] * len(tasks)),
    args=AsyncGRPOConfig(output_dir="out", max_steps=2, per_device_train_batch_size=8),
    rollout_worker=worker,
)
trainer.train()
