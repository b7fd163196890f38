"""The server under test: its address, the simulator behind it, and a batch full of trouble."""

import json
import os
import sys
import unittest
import urllib.request
from pathlib import Path
from typing import Any

from paddock import Client

FOLDER = Path(__file__).parent
# The trainers' own libraries need a GPU: stubs with their fields and rules stand for them.
sys.path.insert(0, str(FOLDER / "stubs"))

GROUP_SIZE = 16


def set_faults(*faults: dict[str, Any]) -> None:
    """Tells the policy simulator what goes wrong from now on; without arguments nothing."""
    body = json.dumps({"faults": faults}).encode()
    urllib.request.urlopen(f"{os.environ['SIMULATOR_URL']}/simulator/faults", body).close()


# Some second turns come without log-probabilities and fail; some first turns are sampled in other
# ids than the template writes, and cut the chain. The simulated policy runs on in some first turns,
# up to the token limit.
TROUBLE = (
    {"kind": "nologprobs", "rate": 0.3, "turns": [2]},
    {"kind": "spelled", "rate": 0.4, "turns": [1]},
)

# Cuts happen where the backend renders: over vLLM in mode chat. It tells no versions: version 3 is
# what the trainer says.
TROUBLED: dict[str, Any] = {
    "policy": {"mode": "chat", "version": 3, "sampling": {"seed": 1, "max_tokens": 200}},
    "groups": {"on_short": "close"},
    "reward": {"reads": ["score"]},
}

# Over SGLang the versions come with the tokens: the simulator's is 7.
VERSIONED: dict[str, Any] = {
    **TROUBLED,
    "policy": {"backend": "sglang", "mode": "tokens", "sampling": {"seed": 1, "max_tokens": 200}},
}


def sums(*numbers: int) -> list[dict[str, Any]]:
    return [{"task": f"arithmetic/sum-{number}"} for number in numbers]


def request_of(number: int) -> str:
    """What the user asks in `sum-<number>`: by it a fault finds the task's conversations."""
    url = f"{os.environ['ROLLOUT_URL']}/v1/tasks/arithmetic/sum-{number}"
    with urllib.request.urlopen(url) as answer:
        return str(json.load(answer)["messages"][-1]["content"])


def is_cut(episode: Any) -> bool:
    return len(episode["samples"]) > 1


class LateOnce(Client):
    """Acknowledges its first group when the lease has run out, so that it is delivered again."""

    deliveries: list[int]

    def lease(self, batch_id: str, max: int = 1, lease_s: float = 300, wait_s: float = 0) -> Any:
        first, self.batch_id = not hasattr(self, "deliveries"), batch_id
        answer = super().lease(batch_id, max, 0.05 if first else lease_s, wait_s)
        if answer["groups"]:
            numbers = [group["lease"]["delivery"] for group in answer["groups"]]
            self.deliveries = [*getattr(self, "deliveries", []), *numbers]
        return answer

    def ack(self, *groups: Any) -> Any:
        while len(self.deliveries) == 1 and self.progress(groups[0]["batch"])["groups"]["leased"]:
            pass
        return super().ack(*groups)


class HouseTest(unittest.TestCase):
    """A test against the running server, which forgets its faults afterwards."""

    def tearDown(self) -> None:
        set_faults()

    def assert_troubled(self, group: Any) -> None:
        """The group has what it is about: a failed, a truncated, a cut and a whole member."""
        outcomes = [episode["outcome"] for episode in group["episodes"]]
        self.assertIn("contract_violation", outcomes)
        self.assertIn("ok_truncated", outcomes)
        self.assertIn("ok", outcomes)
        self.assertTrue(any(is_cut(one) for one in group["episodes"]))
