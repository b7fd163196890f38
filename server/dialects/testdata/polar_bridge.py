"""Trains nothing, but asks a Polar rollout server for groups exactly as slime_bridge does. Standard library only.

    python3 polar_bridge.py URL --generation g2 --tasks office/a,office/b --samples 4

Calls, in this order: its own listener for callbacks; POST /rollout/task/submit for each group; then it waits for the
callback and polls GET /rollout/task/{id} when none comes; DELETE where it stops early. The last line on standard output is
a JSON report. Exit code 3: the training would have died, and why stands in the report.
"""

import argparse
import base64
import http.client
import json
import math
import os
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from polar_wire import (
    Dropped,
    Fatal,
    Invalid,
    LogprobError,
    samples_of,
    task_result,
    task_status,
)

POLL_TRIES = {"g1": 1, "g1-fork": 1, "g2": 5}
RETRYABLE = {408, 425, 429, 500, 502, 503, 504}
#: Where each generation pauses and resumes the engine around a weight update.
PAUSE_PATH = {
    "g1": "/admin/sglang",
    "g1-fork": "/rollout/admin/inference",
    "g2": "/admin/inference",
}


class StatusError(Exception):
    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"HTTP {status}: {body[:300]}")
        self.status = status


class Bridge:
    def __init__(self, flags: argparse.Namespace) -> None:
        self.flags = flags
        self.generation: str = flags.generation
        self.lock = threading.Lock()
        self.events: dict[str, threading.Event] = {}
        self.results: dict[str, dict[str, Any]] = {}
        self.answered = threading.Semaphore(0)
        self.fatal: str | None = None
        self.report: dict[str, Any] = {
            "generation": self.generation,
            "calls": [],
            "callbacks": 0,
            "invalid_callbacks": [],
            "polls": 0,
            "groups": [],
            "dropped": [],
            "stale": 0,
        }

    # HTTP as httpx does it: a connection each, no timeout of its own, 2xx or an error.

    def call(self, method: str, path: str, body: Any = None, timeout: float | None = None) -> Any:
        parts = urllib.parse.urlsplit(self.flags.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=timeout)
        headers = {"Accept": "*/*", "User-Agent": "python-httpx/0.28"}
        if parts.password:
            # httpx sends what stands before the host of an address as Basic, with every call.
            pair = f"{parts.username or ''}:{parts.password}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        if body is not None:
            headers["Content-Type"] = "application/json"
            token = os.environ.get("POLAR_CONTROL_PLANE_TOKEN", "").strip()
            # Of the three generations only the newest knows the token, and only the submit carries it.
            if token and self.generation == "g2":
                headers["X-Polar-Control-Token"] = token
        data = None if body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        with self.lock:
            self.report["calls"].append(f"{method} {path.split('?')[0]} {answer.status}")
        if not 200 <= answer.status < 300:
            raise StatusError(answer.status, text)
        return json.loads(text)

    # The listener of callbacks, which answers 200 whatever comes.

    def listen(self) -> str:
        bridge = self

        class Listener(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = json.dumps(bridge.take(self.path, body)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
                bridge.answered.release()

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Listener)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}/callback/task_result"

    def take(self, path: str, body: Any) -> dict[str, Any]:
        if path != "/callback/task_result":
            return {"ok": False, "reason": f"no such path {path}"}
        task_id = body.get("task_id") if isinstance(body, dict) else None
        if not task_id:
            return {"ok": False, "reason": "missing task_id"}
        with self.lock:
            self.report["callbacks"] += 1
            if self.report["callbacks"] <= self.flags.deaf:
                return {"ok": False, "reason": "not now"}
        try:
            result = task_result(body, self.generation)
        except Invalid as error:
            with self.lock:
                self.report["invalid_callbacks"].append(str(error))
            return {"ok": False, "reason": "invalid payload"}
        with self.lock:
            self.results[task_id] = result
            event = self.events.get(task_id)
        if event:
            event.set()
        return {"ok": True}

    # One group, from its submission to its samples.

    def payload(self, place: int, task: str, evaluate: bool = False) -> dict[str, Any]:
        task_id = f"polar-slime-{place}-{place}"
        settings: dict[str, Any] = {"task": task}
        metadata: dict[str, Any] = {
            "group_id": place,
            "policy_version": self.flags.policy_version,
            "rollout_step": self.flags.policy_version,
        }
        payload: dict[str, Any] = {
            "task_id": task_id,
            "instruction": f"the trainer's own words for {task}",
            "num_samples": self.flags.samples,
            "timeout_seconds": self.flags.timeout,
            "runtime": {"backend": "docker", "image": "nobody/reads:this", "prepare": []},
            "agent": {"harness": self.flags.harness, "model_name": "policy", "settings": settings},
            "builder": {"strategy": "prefix_merging", "config": {"end_of_turn": None}},
            "evaluator": {"strategy": "session_completed", "config": {}},
            "metadata": metadata,
        }
        if self.flags.early_stop:
            payload["early_stop_min_usable_sessions"] = self.flags.early_stop
        if evaluate:
            payload["task_id"] = f"{task_id}-eval-polar_eval-{self.flags.policy_version}-{place}"
        if evaluate and self.generation == "g2":
            payload["early_stop_min_usable_sessions"] = self.flags.samples
            payload["dispatch_priority"] = 100
            extra = {"top_k": -1, "skip_special_tokens": False}
            kwargs = {"temperature": 0.6, "top_p": 1.0, "max_tokens": 400, "extra_body": extra}
            settings["model_kwargs"] = kwargs
            metadata["eval_sampling_seed_base"] = 4_000_000_000 + place
        return payload

    def train_group(self, place: int, task: str) -> None:
        try:
            self.report_group(self.accepted(self.submit_and_wait(self.payload(place, task))))
        except Dropped as reason:
            with self.lock:
                self.report["dropped"].append(str(reason))
        except LogprobError as reason:
            with self.lock:
                self.report["dropped"].append(f"logprob: {reason}")
        except Exception as error:
            # In the first generation a failure costs the group, in the second the whole training.
            with self.lock:
                if self.generation == "g2" or not isinstance(error, Fatal):
                    self.fatal = self.fatal or f"{type(error).__name__}: {error}"
                else:
                    self.report["dropped"].append(str(error))

    def submit_and_wait(self, payload: dict[str, Any]) -> dict[str, Any]:
        task_id = payload["task_id"]
        event = threading.Event()
        with self.lock:
            self.events[task_id] = event
        payload["callback_url"] = self.callback_url
        self.call("POST", "/rollout/task/submit", payload)
        if self.flags.cancel:
            self.cancel(task_id)
            raise Dropped("cancelled")
        while not event.wait(self.flags.fallback):
            status = self.poll(task_id)
            if status["status"] in ("completed", "failed"):
                return status
        with self.lock:
            return self.results[task_id]

    def cancel(self, task_id: str) -> None:
        path = f"/rollout/task/{task_id}?register_if_missing=true"
        task_status(self.call("DELETE", path, timeout=10), self.generation)

    def poll(self, task_id: str) -> dict[str, Any]:
        for tried in range(1, POLL_TRIES[self.generation] + 1):
            with self.lock:
                self.report["polls"] += 1
            try:
                answer = self.call("GET", f"/rollout/task/{task_id}")
                return task_status(answer, self.generation)
            except (StatusError, OSError, http.client.HTTPException) as error:
                status = getattr(error, "status", 503)
                if status not in RETRYABLE or tried == POLL_TRIES[self.generation]:
                    raise
                time.sleep(0.5 * 2 ** (tried - 1))
        raise AssertionError("not reached")

    def accepted(self, result: dict[str, Any]) -> dict[str, Any]:
        """The group's samples, or the reason why it is not trained on."""
        if result["status"] != "completed":
            raise Fatal(f"task status={result['status']}")
        sessions = result["results"]
        if len(sessions) != self.flags.samples:
            raise Fatal(f"session count {len(sessions)} != expected {self.flags.samples}")
        samples = [
            sample
            # Results belong to samples by their place alone.
            for index, session in enumerate(sessions)
            for sample in samples_of(session, index, self.generation, self.flags.cap)
        ]
        trainable = {s["session_id"] for s in samples if not s["remove_sample"] and any(s["loss_mask"])}
        if not trainable:
            raise Dropped("zero trainable tokens")
        completed = sum(
            1 for s in sessions if s["status"] == "COMPLETED" and s["session_id"] in trainable
        )
        if completed < math.ceil(self.flags.fraction * len(sessions)):
            raise Dropped("low complete accept fraction")
        staleness = self.flags.now_version - sessions[0]["metadata"]["policy_version"]
        if staleness > self.flags.max_off_policy:
            with self.lock:
                self.report["stale"] += 1
            raise Dropped("stale")
        return {"task_id": result["task_id"], "sessions": sessions, "samples": samples}

    def report_group(self, group: dict[str, Any]) -> None:
        told = {
            "task_id": group["task_id"],
            "statuses": [session["status"] for session in group["sessions"]],
            "errors": [session.get("error") for session in group["sessions"]],
            "metadata": group["sessions"][0]["metadata"],
            "each_metadata": [session["metadata"] for session in group["sessions"]],
            "session_ids": [session["session_id"] for session in group["sessions"]],
            "rewards": [sample["reward"] for sample in group["samples"]],
            "removed": [sample["remove_sample"] for sample in group["samples"]],
            "sample_statuses": [sample["status"] for sample in group["samples"]],
            "rollout_ids": [sample["rollout_id"] for sample in group["samples"]],
            "trained": [sum(sample["loss_mask"]) for sample in group["samples"]],
            "tokens": [sample["tokens"] for sample in group["samples"]],
            "logprobs": [sample["rollout_log_probs"] for sample in group["samples"]],
            "texts": [sample["text"] for sample in group["samples"]],
        }
        with self.lock:
            self.report["groups"].append(told)

    # Evaluation: everything at once, polled; in the newest generation failures become reward 0 and never stop the training.

    def evaluate_group(self, place: int, task: str) -> None:
        try:
            answer = self.call("POST", "/rollout/task/submit", self.payload(place, task, evaluate=True))
            while True:
                time.sleep(self.flags.poll)
                try:
                    status = task_status(
                        self.call("GET", f"/rollout/task/{answer['task_id']}"), self.generation
                    )
                except (StatusError, OSError, http.client.HTTPException):
                    continue
                if status["status"] in ("completed", "failed"):
                    break
            self.report_group(self.accepted(status))
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            with self.lock:
                if self.generation == "g2" or isinstance(error, Dropped):
                    self.report["dropped"].append(reason)
                else:
                    # Only the newest generation counts what it could not evaluate as unsolved, and goes on.
                    self.fatal = self.fatal or reason

    def weight_update(self) -> None:
        path = PAUSE_PATH[self.generation]
        self.call("POST", f"{path}/pause?timeout_seconds=300")
        self.call("POST", f"{path}/resume")

    def run(self) -> int:
        one = self.evaluate_group if self.flags.evaluate else self.train_group
        self.callback_url = self.flags.callback or self.listen()
        threads = [
            threading.Thread(target=one, args=(self.flags.first + place, task), daemon=True)
            for place, task in enumerate(self.flags.tasks.split(","))
        ]
        for thread in threads:
            thread.start()
        if self.flags.update_weights:
            self.weight_update()
        for thread in threads:
            thread.join()
        # Its listener answers what it has begun to take before it goes.
        for _ in range(self.report["callbacks"]):
            self.answered.acquire(timeout=5)
        self.report["fatal"] = self.fatal
        print(json.dumps(self.report))
        return 0 if self.fatal is None else 3


def flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    add = parser.add_argument
    add("url")
    add("--generation", choices=sorted(PAUSE_PATH), default="g2")
    add("--tasks", required=True, help="ids, separated by commas; one group each")
    add("--samples", type=int, default=4)
    add("--harness", default="paddock")
    add("--timeout", type=float, default=600.0)
    add("--first", type=int, default=0, help="number of the first group, which makes its task id")
    add("--policy-version", type=int, default=0)
    add("--now-version", type=int, default=0)
    add("--max-off-policy", type=int, default=3)
    add("--fraction", type=float, default=0.0, help="polar_min_complete_accept_fraction")
    add("--early-stop", type=int, default=0)
    add("--cap", type=int, default=1_000_000, help="tokens of a sample that the trainer has room for")
    add("--fallback", type=float, default=60.0, help="seconds without a callback before it polls")
    add("--poll", type=float, default=2.0, help="seconds between the polls of an evaluation")
    add("--deaf", type=int, default=0, help="refuse so many callbacks first")
    add("--callback", default="", help="a callback URL that is not its own listener")
    add("--cancel", action="store_true", help="stop the worker as soon as all is submitted")
    add("--evaluate", action="store_true")
    add("--update-weights", action="store_true", help="pause and resume while the groups are played")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(Bridge(flags()).run())
