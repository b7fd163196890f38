"""The client of the native API: what a trainer asks of the server, one method a route."""

import copy
import dataclasses
import logging
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self, cast
from urllib.parse import quote

from paddock.encoding import choose_encoding, read_answer, read_json
from paddock.errors import PaddockError
from paddock.groups import Groups
from paddock.transport import Transport
from paddock.wire import AckResult, BatchAccepted, Group, LeaseAnswer, PolicyState

logger = logging.getLogger("paddock")

DEFAULT_URL = "http://127.0.0.1:8420"

# Who stops because of an error says goodbye within this, seconds.
GOODBYE_S = 5.0


class Client:
    """Safe to share between threads: it keeps no connection and no state.

    Every method raises PaddockError for a refusal (429 and 503 are tried again first, as
    `Retry-After` says) or an answer that is not Paddock's, and ConnectionError where no server
    answers. Each further try is a warning in the log `paddock`.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout_s: float = 60.0,
        retries: int = 8,
        transport: Transport | None = None,
    ):
        """
        Args:
            url: default: `ROLLOUT_URL` of the environment, else http://127.0.0.1:8420.
            token: bearer token; default: `ROLLOUT_TOKEN` of the environment, else none.
            timeout_s: limit of one try, beside what the server was asked to wait.
            retries: further tries after a 429, a 503 or a broken connection.
            transport: takes the place of all four.

        Raises:
            ValueError: for a url or a token that no request can be sent with.
        """
        url = url or os.environ.get("ROLLOUT_URL") or DEFAULT_URL
        token = token or os.environ.get("ROLLOUT_TOKEN") or None
        self._transport = transport or Transport(url.rstrip("/"), token, timeout_s, retries)
        self._encoding = choose_encoding()

    @property
    def encoding(self) -> str:
        """`msgpack` (sequences are numpy arrays) or `json` (they are lists)."""
        return self._encoding.name

    def once(self) -> Self:
        """This client with one short try in place of many: for a goodbye that nobody waits for."""
        hasty = copy.copy(self)
        hasty._transport = dataclasses.replace(
            self._transport, retries=0, timeout_s=min(GOODBYE_S, self._transport.timeout_s)
        )
        return hasty

    @contextmanager
    def cancelling(self, batch_id: str) -> Iterator[None]:
        """Cancels the batch where the body raises; the exception goes on."""
        try:
            yield
        except BaseException:
            self.give_up(batch_id)
            raise

    def give_up(self, *batch_ids: str) -> None:
        """Cancels batches that nobody waits for any more: one short try each, and never an
        exception.
        """
        for batch_id in batch_ids:
            try:
                self.once().cancel(batch_id)
            except (PaddockError, ConnectionError) as error:
                logger.warning("batch %s goes on without a consumer: %s", batch_id, error)

    def submit(self, batch: Mapping[str, Any]) -> BatchAccepted:
        """Submits a batch (`BatchRequest` at /docs of the server). The same id with the same
        request is the same batch.

        A batch without an id gets one here, so that a repeated request cannot start it twice.
        """
        request = {"id": f"b-{uuid.uuid4()}", **batch}
        return cast(BatchAccepted, self._call("POST", "/v1/batches", request, key="id"))

    def groups(
        self, batch_id: str, max: int = 1, lease_s: float = 300.0, wait_s: float = 20.0
    ) -> Groups:
        """Iterates over the finished groups of a batch until it is done; see Groups.

        Args:
            max: groups leased at once. Their leases run together: keep it at 1 unless a group takes
                little time.
            lease_s: after so many seconds without an ack a group is delivered again.
            wait_s: how long one request waits for a finished group; at most 60.
        """
        return Groups(self, batch_id, max, lease_s, wait_s)

    def lease(
        self, batch_id: str, max: int = 1, lease_s: float = 300.0, wait_s: float = 0.0
    ) -> LeaseAnswer:
        """Leases up to `max` finished groups; waits up to `wait_s` seconds for a first."""
        answer = self._transport.request(
            "POST",
            f"{_batch_path(batch_id)}/lease",
            {"max": max, "lease_s": lease_s, "wait_s": wait_s},
            accept=self._encoding.accept,
            wait_s=wait_s,
        )
        return cast(LeaseAnswer, read_answer(answer, self._encoding.read, "groups", "done"))

    def ack(self, *groups: Group) -> list[AckResult]:
        """Acknowledges leased groups of one batch: they are never delivered again."""
        return self._settle("ack", groups, None)

    def nack(self, *groups: Group, reason: str | None = None) -> list[AckResult]:
        """Hands leased groups of one batch back: they are ready again at once."""
        return self._settle("nack", groups, reason)

    def progress(self, batch_id: str) -> dict[str, Any]:
        """Episodes by outcome, groups by verdict and settlement, tokens, seconds (`BatchProgress`
        at /docs).
        """
        return cast(dict[str, Any], self._call("GET", _batch_path(batch_id), key="groups"))

    def cancel(self, batch_id: str) -> dict[str, Any]:
        """Stops what has not finished; finished groups stay to be leased. Returns the progress."""
        return cast(dict[str, Any], self._call("DELETE", _batch_path(batch_id), key="groups"))

    def resume(self, batch_id: str) -> dict[str, Any]:
        """Lets a batch go on that paused itself; `pause` in its progress says why it did. Returns
        the progress.
        """
        return cast(
            dict[str, Any], self._call("POST", f"{_batch_path(batch_id)}/resume", key="groups")
        )

    def episode(self, episode_id: str) -> dict[str, Any]:
        """The trajectory of a finished episode: messages, turns, calls, observations, grade."""
        path = f"/v1/episodes/{quote(episode_id, safe='')}"
        return cast(dict[str, Any], self._call("GET", path, key="messages"))

    def announce_policy(
        self,
        version: int | None = None,
        backend: str = "main",
        pause: bool | None = None,
        new_epoch: bool | None = None,
    ) -> PolicyState:
        """Tells which version a backend serves (it never goes back), or pauses episodes for a
        weight update. `new_epoch`: a training that starts again, at any version; groups that were
        begun before settle as stale.
        """
        request = {
            "backend": backend,
            "version": version,
            "pause": pause,
            "new_epoch": new_epoch,
        }
        told = {key: value for key, value in request.items() if value is not None}
        return cast(PolicyState, self._call("POST", "/v1/policy", told, key="version"))

    def heartbeat(self, step: int, checkpoint_step: int | None = None) -> dict[str, Any]:
        """Says that the trainer is alive, and at which optimizer step. `checkpoint_step`: of its newest
        checkpoint, 0 for one from before the first step; where no heartbeat names one, the server knows
        of none, and alerts after fifty steps.
        """
        checkpoint = {} if checkpoint_step is None else {"checkpoint_step": checkpoint_step}
        told = {"step": step, **checkpoint}
        return cast(dict[str, Any], self._call("POST", "/v1/heartbeat", told, key="step"))

    def parse(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """Parses the tool calls of a model's text: `{"id": "1", "format": "hermes", "tools": [],
        "text": "…"}`.
        """
        return cast(dict[str, Any], self._call("POST", "/v1/parse", line, key="calls"))

    def advantages(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """Advantages of rewards: `{"name": "mine", "estimator": "grpo", "settings": {}, "input":
        {"rewards": [1, 0, None], "groups": ["a", "a", "a"]}}`; the reward None is none.
        """
        return cast(dict[str, Any], self._call("POST", "/v1/advantages", line, key="advantages"))

    def _settle(self, verb: str, groups: tuple[Group, ...], reason: str | None) -> list[AckResult]:
        batches = {group["batch"] for group in groups}
        if len(batches) != 1:
            raise ValueError(
                f"{verb}: expected groups of one batch, found those of {sorted(batches) or 'none'}"
            )
        body: dict[str, Any] = {
            "groups": [{"id": group["id"], "lease": group["lease"]["id"]} for group in groups]
        }
        if reason is not None:
            body["reason"] = reason
        answer = self._call("POST", f"{_batch_path(batches.pop())}/{verb}", body, key="groups")
        return [group["result"] for group in answer["groups"]]

    def _call(self, method: str, path: str, body: Any = None, *, key: str) -> Any:
        """The answer, which has `key` if it is Paddock's."""
        return read_answer(self._transport.request(method, path, body), read_json, key)


def _batch_path(batch_id: str) -> str:
    # An id is the trainer's own word: "?" and "#" in it would end the path.
    return f"/v1/batches/{quote(batch_id, safe='')}"
