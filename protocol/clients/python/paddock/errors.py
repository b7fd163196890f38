"""A refusal of the server as an exception: its RFC 9457 problem document, field by field."""

import json
from typing import Any


class PaddockError(Exception):
    """The server answered with a status of 400 or above.

    Attributes:
        status: HTTP status.
        code: the stable code to switch on, as `conflict` or `contract_mismatch`; "" where something
            in between answered.
        detail: a sentence that says what was expected, what came and what to do.
        path: JSON path of the offending value in the request, "" where the whole request is meant.
        retryable: whether the same request may succeed later.
    """

    def __init__(
        self, status: int, code: str, detail: str, path: str = "", retryable: bool = False
    ):
        place = f" at {path}" if path else ""
        super().__init__(f"{status} {code or 'no problem document'}{place}: {detail}")
        self.status = status
        self.code = code
        self.detail = detail
        self.path = path
        self.retryable = retryable

    @classmethod
    def from_body(cls, status: int, body: bytes) -> "PaddockError":
        """Reads a problem document; of a proxy's page the first 300 characters are kept as
        `detail`.
        """
        text = body.decode("utf-8", "replace")
        try:
            problem: Any = json.loads(text)
        except ValueError:
            problem = None
        if not isinstance(problem, dict) or "code" not in problem:
            return cls(status, "", text[:300])
        return cls(
            status,
            str(problem["code"]),
            str(problem.get("detail", "")),
            str(problem.get("path", "")),
            bool(problem.get("retryable", False)),
        )
