"""Rewards as slime's `remote_rm` asks for them: POST of prompt, response and label; the JSON body is the reward.

Written from slime's behaviour (slime/rollout/rm_hub/__init__.py at 624b824a) with nothing but the standard library: 64
connections, 120 s for a call, ten tries with min(2^n, 30) s and up to one second more between them, then the error goes
up. `--pause` scales the waits. Samples are JSON lines on standard input, rewards JSON lines on standard output; a reward
that is no number ends the program, as `sample.reward` without --reward-key must be one.
"""

import argparse
import json
import random
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor


def reward_of(args, sample):
    payload = {"prompt": sample["prompt"], "response": sample["response"], "label": sample["label"]}
    for attempt in range(10):
        try:
            body = json.dumps(payload).encode()
            request = urllib.request.Request(args.rm_url, body, {"content-type": "application/json"})
            with urllib.request.urlopen(request, timeout=120) as response:
                return json.load(response)
        except Exception as error:
            if attempt == 9:
                raise
            print(f"remote_rm: {error}", file=sys.stderr)
            time.sleep((min(2**attempt, 30) + random.random()) * args.pause)
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rm-url", required=True)
    parser.add_argument("--pause", type=float, default=1.0)
    args = parser.parse_args()
    samples = [json.loads(line) for line in sys.stdin]
    with ThreadPoolExecutor(64) as pool:
        for reward in pool.map(lambda sample: reward_of(args, sample), samples):
            assert type(reward) in (int, float), f"the reward is no number: {reward!r}"
            print(json.dumps(reward), flush=True)


main()
