"""What Polar's slime_bridge checks of an answer before it trains on it, in three generations. Standard library only.

Written from the behaviour of the bridge: the models that it validates with (unknown keys ignored except in the
timing, which forbids them), and the turning of a session into training samples, with every error that ends the training
(`Fatal`), costs the group (`Dropped`), or costs one session (a placeholder).
"""

import math
from typing import Any

SESSION_STATES = (
    "REGISTERED INITIALIZING READY RUNNING POST_RUN BUILDING EVALUATING COMPLETED ERROR TIMEOUT"
).split()
TRAJECTORY_STATES = ("COMPLETED", "TIMEOUT", "ERROR")

COMMON_TIMING = {"register_to_init_queue_ms", "init_ms", "run_ms", "postrun_ms"}
#: The keys that each generation's timing has beside the common four; any other key is refused.
TIMING = {
    "g1": COMMON_TIMING,
    "g1-fork": COMMON_TIMING | {"ready_queue_ms", "agent_ms", "evaluation_ms"},
    "g2": COMMON_TIMING
    | {f"rollout_{name}_ms" for name in ("dispatch", "result_wait", "pipeline_e2e")}
    | {f"{name}_ms" for name in ("ready_queue", "postrun_queue", "build", "eval", "e2e")},
}


class Invalid(Exception):
    """The answer does not fit the client's model."""


class Fatal(Exception):
    """The background worker stops, and the training with it."""


class Dropped(Exception):
    """The group is lost to the training, which goes on."""


class LogprobError(Exception):
    """A trace that is to be trained has no aligned mask or log-probabilities."""


def check(condition: bool, sentence: str) -> None:
    if not condition:
        raise Invalid(sentence)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def task_result(body: Any, generation: str) -> dict[str, Any]:
    """A TaskResult, as the callback's body is read."""
    check(isinstance(body, dict), "expected an object")
    for key in ("task_id", "status"):
        check(isinstance(body.get(key), str), f"{key}: expected text")
    check(isinstance(body.get("results"), list), "results: expected a list")
    for place, session in enumerate(body["results"]):
        check_session(session, generation, f"results[{place}]")
    paths = body.get("result_paths", [])
    check(all(isinstance(path, str) for path in paths), "result_paths: expected texts")
    return body


def task_status(body: Any, generation: str) -> dict[str, Any]:
    """A TaskStatus, as a poll's body is read."""
    check(isinstance(body, dict), "expected an object")
    for key in ("total_sessions", "completed_sessions"):
        value = body.get(key)
        check(isinstance(value, int) and not isinstance(value, bool), f"{key}: expected a number")
    return task_result({"results": [], **body}, generation)


def check_session(session: Any, generation: str, path: str) -> None:
    check(isinstance(session, dict), f"{path}: expected an object")
    for key in ("session_id", "task_id"):
        check(isinstance(session.get(key), str), f"{path}.{key}: expected text")
    check(session.get("status") in SESSION_STATES, f"{path}.status: {session.get('status')!r}")
    for key in ("node_id", "error"):
        check(session.get(key) is None or isinstance(session[key], str), f"{path}.{key}")
    check(isinstance(session.get("metadata", {}), dict), f"{path}.metadata: expected an object")
    timing = session.get("timing", {})
    check(isinstance(timing, dict), f"{path}.timing: expected an object")
    extra = sorted(set(timing) - TIMING[generation])
    check(not extra, f"{path}.timing: unknown keys {extra}")
    check(all(is_number(value) for value in timing.values()), f"{path}.timing: expected numbers")
    check_trajectory(session.get("trajectory"), f"{path}.trajectory")


def check_trajectory(trajectory: Any, path: str) -> None:
    check(isinstance(trajectory, dict), f"{path}: expected an object")
    check(trajectory.get("status") in TRAJECTORY_STATES, f"{path}.status")
    check(isinstance(trajectory.get("metadata", {}), dict), f"{path}.metadata")
    check(isinstance(trajectory.get("traces", []), list), f"{path}.traces: expected a list")
    error = trajectory.get("error")
    check(error is None or isinstance(error, str), f"{path}.error")
    for place, trace in enumerate(trajectory.get("traces", [])):
        check_trace(trace, f"{path}.traces[{place}]")


def check_trace(trace: Any, path: str) -> None:
    check(isinstance(trace, dict), f"{path}: expected an object")
    for key in ("prompt_ids", "response_ids", "loss_mask"):
        ids = trace.get(key, [])
        check(isinstance(ids, list) and all(type(one) is int for one in ids), f"{path}.{key}")
    for key in ("prompt_messages", "response_messages"):
        messages = trace.get(key, [])
        check(all(isinstance(message, dict) for message in messages), f"{path}.{key}")
    response, mask = trace.get("response_ids", []), trace.get("loss_mask", [])
    check(set(mask) <= {0, 1}, f"{path}.loss_mask: expected 0 and 1")
    check(not mask or len(mask) == len(response), f"{path}.loss_mask: wrong length")
    logprobs = trace.get("response_logprobs")
    if logprobs is not None:
        check(all(is_number(one) for one in logprobs), f"{path}.response_logprobs")
        check(len(logprobs) == len(response), f"{path}.response_logprobs: wrong length")
    reward = trace.get("reward")
    if reward is not None:
        check(is_number(reward) and math.isfinite(reward), f"{path}.reward: {reward!r}")
    check(isinstance(trace.get("metadata", {}), dict), f"{path}.metadata")


def samples_of(session: dict[str, Any], index: int, generation: str, cap: int) -> list[Any]:
    """One sample for each usable trace; a placeholder where there is none."""
    samples = []
    for trace in session["trajectory"].get("traces", []):
        try:
            sample = sample_of(session, trace, index, generation, cap)
        except LogprobError:
            # The first generation gives the whole group up, the second this session alone.
            if generation != "g2":
                raise
            return [placeholder(session, index, "sample_conversion_error")]
        if sample is not None:
            samples.append(sample)
    return samples or [placeholder(session, index, None)]


def sample_of(
    session: dict[str, Any], trace: dict[str, Any], index: int, generation: str, cap: int
) -> dict[str, Any] | None:
    prompt, response = trace.get("prompt_ids", []), trace.get("response_ids", [])
    if not prompt or not response:
        return None
    status = status_of(session, trace)
    removed = status in ("aborted", "failed")
    mask, logprobs = trace.get("loss_mask", []), trace.get("response_logprobs")
    if removed:
        mask, logprobs = [0] * len(response), [0.0] * len(response)
    elif not mask or (any(mask) and logprobs is None):
        raise LogprobError(f"{session['session_id']}: no aligned mask and log-probabilities")
    if len(prompt) + len(response) > cap:
        room = cap - len(prompt)
        if generation != "g2" or room <= 0:
            return None
        response, mask, logprobs = response[:room], mask[:room], (logprobs or [])[:room]
    if not removed and not any(mask):
        return None
    invalid = is_unparsed_call(trace)
    return {
        "rollout_id": index,
        "tokens": prompt + response,
        "response_length": len(response),
        "loss_mask": mask,
        "rollout_log_probs": logprobs,
        # A missing reward silently becomes 0, and so does that of a failed session.
        "reward": 0.0 if removed or invalid else float(trace.get("reward") or 0.0),
        "status": status,
        "remove_sample": removed,
        "session_id": session["session_id"],
        "metadata": session.get("metadata", {}),
        "text": "".join(str(one.get("content") or "") for one in trace.get("response_messages", [])),
    }


def placeholder(session: dict[str, Any], index: int, why: str | None) -> dict[str, Any]:
    return {
        "rollout_id": index,
        "tokens": [0, 0],
        "response_length": 1,
        "loss_mask": [0],
        "rollout_log_probs": [0.0],
        "reward": 0.0,
        "status": "aborted",
        "remove_sample": True,
        "session_id": session["session_id"],
        "metadata": session.get("metadata", {}),
        "error": why or session.get("error"),
        "text": "",
    }


def status_of(session: dict[str, Any], trace: dict[str, Any]) -> str:
    states = (session["status"], session["trajectory"]["status"])
    if "TIMEOUT" in states:
        return "aborted"
    if "ERROR" in states or session.get("error") or session["trajectory"].get("error"):
        return "failed"
    return "truncated" if trace.get("finish_reason") == "length" else "completed"


def is_unparsed_call(trace: dict[str, Any]) -> bool:
    """A tool call that stands in the text and nowhere else costs the reward."""
    said = [one for one in trace.get("response_messages", []) if one.get("role") == "assistant"]
    if trace.get("finish_reason") == "tool_calls" and said and not said[-1].get("tool_calls"):
        return True
    return any(
        line.strip() in ("<tool_call>", "</tool_call>") or line.strip().startswith("<function=")
        for message in said
        if not message.get("tool_calls")
        for line in str(message.get("content") or "").split("\n")
    )
