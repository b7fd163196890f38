# AsyncGRPO on the server's rollouts and advantages.
from datasets import Dataset
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer
from trl.experimental.async_grpo.weight_transfer import WeightTransferClient

from paddock.trl import RolloutWorker

MODEL = "Qwen/Qwen3-8B"
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
args = AsyncGRPOConfig(output_dir="out", max_steps=2, per_device_train_batch_size=8)
trainer = AsyncGRPOTrainer(
    model=MODEL,
    # The server grades, and the data set is only counted: what is played are the worker's tasks.
    reward_funcs=[],
    train_dataset=Dataset.from_list([{"prompt": [{"role": "user", "content": ""}]}] * len(tasks)),
    args=args,
    rollout_worker=worker,
)
# TRL leaves the weights to whoever brings a worker: to the engine that the server asks.
parameters = [(name, value) for name, value in trainer.model.named_parameters()]
trainer.weight_transfer = WeightTransferClient(
    vllm_server_url=args.vllm_server_base_url,
    server_timeout=args.vllm_server_timeout,
    weight_update_info={
        "names": [name for name, _ in parameters],
        "dtype_names": [str(value.dtype).split(".")[-1] for _, value in parameters],
        "shapes": [list(value.shape) for _, value in parameters],
        "packed": True,
        "is_checkpoint_format": True,
    },
)
trainer.train()
