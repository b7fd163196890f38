"""A trainer as slime's rollout_buffer example is one: the same calls in the same order, the same checks, fatal where it dies.

Written from slime's behaviour (slime_plugins/rollout_buffer/rollout_buffer_example.py and slime/rollout/data_source.py at
624b824a) with nothing but the standard library. `--pause` scales its two sleeps (5 s before each poll, 3 s between two).
Each rollout is one JSON line on standard output; `--checkpoint FILE` is read at the start and written after each rollout.
"""

import argparse
import json
import sys
import time
import urllib.request
from pathlib import Path

REQUIRED = {"uid", "instance_id", "messages", "reward", "extra_info"}


def post(url, body, timeout):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=timeout) as response:
        return json.load(response)


class DataBuffer:
    """The data source of the trainer: groups of exactly n samples, and metadata that a checkpoint keeps."""

    def __init__(self, size, checkpoint):
        self.size, self.checkpoint, self.groups = size, checkpoint, []
        self.metadata = json.loads(checkpoint.read_text()) if checkpoint and checkpoint.exists() else {}

    def add(self, groups):
        for group in groups:
            assert len(group) == self.size, f"a group has {len(group)} samples, not {self.size}"
            self.groups.append(group)

    def take(self, count):
        taken, self.groups = self.groups[:count], self.groups[count:]
        return taken

    def save(self):
        if self.checkpoint:
            self.checkpoint.write_text(json.dumps(self.metadata))


def start(args, metadata):
    payload = {
        "num_process": "100",
        "num_epoch": str(args.num_epoch or 3),
        "remote_engine_url": args.engine,
        "remote_buffer_url": args.url,
        "task_type": args.task_type,
        "input_file": args.prompt_data,
        "num_repeat_per_sample": str(args.n),
        "max_tokens": str(args.max_tokens),
        "sampling_params": {"max_tokens": args.max_tokens, "temperature": args.temperature, "top_p": 1.0},
        "tokenizer_path": "/models/only-the-trainer-has",
        "skip_instance_ids": [one for ids in metadata.values() for one in ids],
    }
    while True:
        try:
            return post(f"{args.url}/start_rollout", payload, 10)
        except Exception as error:  # slime's loop ends with success only
            print(f"start_rollout: {error}", file=sys.stderr)


def poll(args):
    while True:
        answer = post(f"{args.url}/get_rollout_data", {}, 120)
        if answer["success"]:
            break
        time.sleep(3 * args.pause)
    data, meta = answer["data"], {}
    if isinstance(data, list):
        if "data" in data[0]:
            data = [item["data"] for item in data]
    elif "data" in data:
        data, meta = data["data"], data["meta_info"]
    for item in data:
        if not REQUIRED.issubset(item):
            raise ValueError(f"keys are missing: {item}")
    return data, meta


def newest(items, need):
    groups = {}
    for item in items:
        groups.setdefault(item["instance_id"], []).append(item)
    assert need < len(items), "need_length must be smaller than results length"

    def stamp(group):
        stamps = [
            float(item["timestamp"] if "timestamp" in item else item["extra_info"]["timestamp"])
            for item in group
            if "timestamp" in item or "timestamp" in item["extra_info"]
        ]
        return max(stamps) if stamps else 0

    return sorted(groups.values(), key=stamp, reverse=True)[:need]


def sample_of(record):
    """What becomes of an item; a tokenizer takes text, and text that is UTF-8."""
    for message in record["messages"]:
        message["content"].encode()
    assert any(message["role"] == "assistant" for message in record["messages"]), "no token is trained"
    extra = record["extra_info"]
    truncated = "finish_reason" in extra and extra["finish_reason"] == "length"
    return {
        "index": record["instance_id"],
        "prompt": record["uid"],
        "messages": record["messages"],
        "reward": record["reward"],
        "status": "truncated" if truncated else "completed",
        "metadata": {**extra},
    }


def generate(args, rollout, buffer):
    missing = args.rollout_batch_size * args.n - len(buffer.groups)
    if missing <= 0:
        return buffer.take(args.rollout_batch_size), []
    assert missing % args.n == 0, "data_number_to_fetch must be a multiple of n_samples_per_prompt"
    results, metas = [], []
    while True:
        try:
            while len(results) < missing:
                time.sleep(5 * args.pause)
                data, meta = poll(args)
                results.extend(data)
                if meta:
                    metas.append(meta)
            break
        except Exception as error:
            print(f"get_rollout_data: {error!r}", file=sys.stderr)
            # slime would ask on for ever: what its checks refuse ends this program instead.
            if isinstance(error, (ValueError, KeyError, AssertionError)):
                raise
    samples = sum(meta["total_samples"] for meta in metas if "total_samples" in meta)
    mean = sum(meta["avg_reward"] * meta["total_samples"] for meta in metas) / max(samples, 1)
    groups = newest(results, missing // args.n)
    if metas and "finished_groups" in metas[0]:
        finished = [one for meta in metas for one in meta["finished_groups"]]
        buffer.metadata.update({str(rollout): finished})
    buffer.add([[sample_of(record) for record in group] for group in groups])
    return buffer.take(args.rollout_batch_size), [len(results), samples, mean]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--task-type", default="math")
    parser.add_argument("--prompt-data", default="/data/only-the-trainer-has.jsonl")
    parser.add_argument("--first-rollout", type=int, default=0)
    parser.add_argument("--num-rollout", type=int, default=1)
    parser.add_argument("--rollout-batch-size", type=int, default=4)
    parser.add_argument("--n", type=int, default=4)
    parser.add_argument("--num-epoch", type=int)
    parser.add_argument("--max-tokens", type=int, default=512)
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--pause", type=float, default=1.0)
    parser.add_argument("--checkpoint", type=Path)
    args = parser.parse_args()
    buffer = DataBuffer(args.n, args.checkpoint)
    started = start(args, buffer.metadata)
    print(json.dumps({"started": started}), flush=True)
    for rollout in range(args.first_rollout, args.first_rollout + args.num_rollout):
        groups, fetched = generate(args, rollout, buffer)
        report = {"rollout": rollout, "groups": groups, "fetched": fetched, "metadata": buffer.metadata}
        print(json.dumps(report), flush=True)
        buffer.save()


main()
