"""`python -m verl.trainer.main_ppo` as far as an agent loop sees it: one step, one validation."""

import asyncio
import importlib
import json
import sys
from types import SimpleNamespace
from typing import Any

from block_yaml import read_yaml
from verl.experimental.agent_loop.agent_loop import AgentLoopWorker, scores_of
from verl.tensor import Tensor
from verl.trainer.ppo.core_algos import get_adv_estimator_fn
from verl.trainer.ppo.ray_trainer import validation_lists

DEFAULTS = [
    "algorithm.adv_estimator=gae",
    "actor_rollout_ref.rollout.temperature=1.0",
    "actor_rollout_ref.rollout.top_p=1",
    "actor_rollout_ref.rollout.val_kwargs.temperature=0",
    "actor_rollout_ref.rollout.val_kwargs.top_p=1.0",
    "actor_rollout_ref.rollout.val_kwargs.n=1",
]


def build_config(overrides: list[str]) -> Any:
    root = SimpleNamespace()
    for override in [*DEFAULTS, *overrides]:
        path, _, text = override.partition("=")
        *parents, name = path.split(".")
        node = root
        for parent in parents:
            if not hasattr(node, parent):
                setattr(node, parent, SimpleNamespace())
            node = getattr(node, parent)
        number = text.replace(".", "", 1).isdigit()
        setattr(node, name, json.loads(text) if number or text in ("true", "false") else text)
    return root


def read_rows(path: str) -> list[dict[str, Any]]:
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def repeat(rows: list[dict[str, Any]], times: int) -> list[dict[str, Any]]:
    """`DataProto.repeat(interleave=True)` after every prompt was given its uid."""
    return [
        {**row, "raw_prompt": row["prompt"], "uid": f"uid-{number}"}
        for number, row in enumerate(rows)
        for _ in range(times)
    ]


def build_loop(config: Any, entry: dict[str, Any]) -> Any:
    """`hydra.utils.instantiate` of the loop's entry with verl's own arguments."""
    module, _, name = entry["_target_"].rpartition(".")
    settings = {key: value for key, value in entry.items() if key != "_target_"}
    return getattr(importlib.import_module(module), name)(
        trainer_config=SimpleNamespace(config=config),
        server_manager=None,
        tokenizer=None,
        processor=None,
        **settings,
    )


def main(overrides: list[str]) -> None:
    config = build_config(overrides)
    rollout = config.actor_rollout_ref.rollout
    entries = {one.pop("name"): one for one in read_yaml(rollout.agent.agent_loop_config_path)}
    entry = entries[rollout.agent.default_agent_loop]
    worker = AgentLoopWorker(config, lambda: build_loop(config, entry))
    rows = read_rows(config.data.train_files)[: config.data.train_batch_size]
    outputs = asyncio.run(worker.generate_sequences(repeat(rows, rollout.n)))
    estimate = get_adv_estimator_fn(config.algorithm.adv_estimator)
    width = rollout.response_length
    advantages, _ = estimate(
        token_level_rewards=Tensor([[score] for score in scores_of(outputs)]),
        response_mask=Tensor(
            [one.response_mask + [0] * (width - len(one.response_mask)) for one in outputs]
        ),
        index=[f"uid-{number // rollout.n}" for number in range(len(outputs))],
        config=config.algorithm,
    )
    checked = asyncio.run(
        worker.generate_sequences(
            repeat(read_rows(config.data.val_files), rollout.val_kwargs.n), validate=True
        )
    )
    report = {
        "rows": len(outputs),
        "advantages": [sum(row) for row in advantages.rows],
        "val_rewards": validation_lists(checked, scores_of(checked))["reward"],
    }
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
