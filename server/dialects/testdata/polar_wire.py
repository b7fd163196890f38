"""What Polar's slime_bridge checks of an answer before it trains on it, in three generations. Standard library only.

Written from the behaviour of the bridge: the models that it validates with (unknown keys ignored except in the
timing, which forbids them), and the turning of a session into training samples, with every error that ends the training
(`Fatal`), costs the group (`Dropped`), or costs one session (a placeholder).
"""

import math
import re
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
    check_trajectory(session.get("trajectory"), generation, f"{path}.trajectory")


def check_trajectory(trajectory: Any, generation: str, path: str) -> None:
    check(isinstance(trajectory, dict), f"{path}: expected an object")
    check(trajectory.get("status") in TRAJECTORY_STATES, f"{path}.status")
    check(isinstance(trajectory.get("metadata", {}), dict), f"{path}.metadata")
    check(isinstance(trajectory.get("traces", []), list), f"{path}.traces: expected a list")
    error = trajectory.get("error")
    check(error is None or isinstance(error, str), f"{path}.error")
    for place, trace in enumerate(trajectory.get("traces", [])):
        check_trace(trace, generation, f"{path}.traces[{place}]")


def check_trace(trace: Any, generation: str, path: str) -> None:
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
        check(isinstance(logprobs, list), f"{path}.response_logprobs: expected a list")
        # The first generation has an object a token, and looks at their number only when it makes the sample.
        kind = dict if generation == "g1" else (int, float)
        check(all(isinstance(one, kind) for one in logprobs), f"{path}.response_logprobs: wrong items")
        if generation != "g1":
            check(len(logprobs) == len(response), f"{path}.response_logprobs: wrong length")
    reward = trace.get("reward")
    if reward is not None:
        check(is_number(reward) and math.isfinite(reward), f"{path}.reward: {reward!r}")
    components = trace.get("reward_components", {})
    check(all(is_number(one) for one in components.values()), f"{path}.reward_components")
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
            if is_unparsed_call(trace):
                continue
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
    newest = generation == "g2"
    status = status_of(session, trace)
    removed = status in ("aborted", "failed")
    # Older generations drop what is too long before they look at it, the newest cuts the response.
    room = cap - len(prompt)
    if len(response) > room and (not newest or room <= 0):
        return None
    mask = mask_of(session, trace, removed)
    logprobs = logprobs_of(session, trace, mask, generation, removed)
    if len(response) > room:
        response, mask, logprobs = response[:room], mask[:room], logprobs[:room]
        status = "truncated" if status == "completed" else status
    if newest and not removed and not any(mask):
        return None
    # Only the newest takes the reward from a failed session, and from a call that could not be read.
    unpaid = newest and (removed or is_unparsed_call(trace))
    return {
        "rollout_id": index,
        "tokens": prompt + response,
        "response_length": len(response),
        "loss_mask": mask,
        "rollout_log_probs": logprobs,
        # A missing reward silently becomes 0.
        "reward": 0.0 if unpaid else float(trace.get("reward") or 0.0),
        "status": status,
        "remove_sample": newest and removed,
        "session_id": session["session_id"],
        "metadata": session.get("metadata", {}),
        "text": "".join(str(one.get("content") or "") for one in trace.get("response_messages", [])),
    }


def mask_of(session: dict[str, Any], trace: dict[str, Any], removed: bool) -> list[int]:
    length, mask = len(trace["response_ids"]), trace.get("loss_mask", [])
    if mask and len(mask) != length or not mask and not removed:
        raise LogprobError(f"{session['session_id']}: no aligned mask")
    return [0] * length if removed else mask


def logprobs_of(
    session: dict[str, Any], trace: dict[str, Any], mask: list[int], generation: str, removed: bool
) -> list[float]:
    length, logprobs = len(trace["response_ids"]), trace.get("response_logprobs")
    if not logprobs and (removed or not any(mask)):
        return [0.0] * length
    if not logprobs or len(logprobs) != length:
        raise LogprobError(f"{session['session_id']}: no aligned log-probabilities")
    if generation != "g1":
        return [float(one) for one in logprobs]
    for trained, one in zip(mask, logprobs, strict=True):
        if trained and "logprob" not in one:
            raise LogprobError(f"{session['session_id']}: a trained token has no log-probability")
    return [float(one.get("logprob", 0.0)) for one in logprobs]


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


FENCED = re.compile(r"```.*?```", re.DOTALL)
#: A tag of a call that stands alone on its line.
LITERAL_CALL = re.compile(r"^\s*(</?tool_call>|<function\s*=.+?>)\s*$", re.IGNORECASE | re.MULTILINE)
FORMAT_ERRORS = (
    "tool_call_format_error tool_call_parse_error tool_parser_error invalid_tool_call"
).split()


def is_unparsed_call(trace: dict[str, Any]) -> bool:
    """A tool call that stands in the text and nowhere else costs the reward; so does one that is marked as such."""
    said = [one for one in trace.get("response_messages", []) if one.get("role") == "assistant"]
    marked = [trace.get("metadata"), *said, *(message.get("metadata") for message in said)]
    if any(has_format_error(one) for one in marked):
        return True
    if trace.get("metadata", {}).get("training_filter", {}).get("reason") == "parser_invalid_tool_call":
        return True
    ends_in_call = trace.get("finish_reason") in ("tool_calls", "tool_use", "function_call")
    if ends_in_call and said and not said[-1].get("tool_calls"):
        return True
    return any(
        isinstance(message.get("content"), str)
        and LITERAL_CALL.search(FENCED.sub("", message["content"])) is not None
        for message in said
        if not message.get("tool_calls")
    )


def has_format_error(metadata: Any) -> bool:
    if not isinstance(metadata, dict):
        return False
    nested = [metadata.get(key) for key in ("tool_call_validation", "parser", "parse_result")]
    places = [metadata, *(one for one in nested if isinstance(one, dict))]
    return any(place.get(key) for place in places for key in FORMAT_ERRORS)
