"""A refusal of the server as an exception: its RFC 9457 problem document, field by field."""

import json
from typing import Any

# Of what is not ours to read, a proxy's page or a foreign server's answer, so many characters are
# told.
TOLD_CHARACTERS = 300


class PaddockError(Exception):
    """The server refused, or what answered is no Paddock server.

    Attributes:
        status: HTTP status; below 300 where the answer could not be read.
        code: the stable code to switch on, as `conflict` or `contract_mismatch`; "" where something
            in between answered.
        detail: a sentence that says what was expected, what came and what to do.
        path: JSON path of the offending value in the request, "" where the whole request is meant.
        retryable: whether the same request may succeed later.
        retry_after_s: seconds after which it may, where the answer says so.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        path: str = "",
        retryable: bool = False,
        retry_after_s: float | None = None,
    ):
        place = f" at {path}" if path else ""
        super().__init__(f"{status} {code or 'no problem document'}{place}: {detail}")
        self.status = status
        self.code = code
        self.detail = detail
        self.path = path
        self.retryable = retryable
        self.retry_after_s = retry_after_s

    @classmethod
    def from_body(
        cls, status: int, body: bytes, retry_after_s: float | None = None
    ) -> "PaddockError":
        """Reads a problem document; of a proxy's page the first 300 characters are kept as
        `detail`.
        """
        text = body.decode("utf-8", "replace")
        try:
            problem: Any = json.loads(text)
        except ValueError:
            problem = None
        if not isinstance(problem, dict) or "code" not in problem:
            return cls(status, "", text[:TOLD_CHARACTERS], retry_after_s=retry_after_s)
        return cls(
            status,
            str(problem["code"]),
            str(problem.get("detail", "")),
            str(problem.get("path", "")),
            bool(problem.get("retryable", False)),
            retry_after_s,
        )


class BatchPaused(Exception):
    """A batch starts no further group: its graders or its contract are broken, or its groups are
    worth nothing. `Client.resume` lets it go on; iterating again then does.

    Attributes:
        reason: `contract` or `waste`.
        group: the group whose end showed it.
    """

    def __init__(self, batch_id: str, pause: dict[str, Any]):
        super().__init__(f"batch {batch_id} is paused, {pause['reason']}: {pause['message']}")
        self.reason = str(pause["reason"])
        self.group = str(pause["group"])


def check_pause(batch_id: str, progress: dict[str, Any]) -> None:
    """Raises BatchPaused where nothing more will come of the batch by itself."""
    pause, groups = progress.get("pause"), progress["groups"]
    if pause and not (groups["in_flight"] or groups["ready"] or groups["leased"]):
        raise BatchPaused(batch_id, pause)
