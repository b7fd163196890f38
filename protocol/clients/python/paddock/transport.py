"""HTTP to the server: one request, tried again where that can help."""

import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any

from paddock.errors import PaddockError

RETRIED_STATUSES = (429, 503)

# Waits between tries, seconds: doubled from the first to the longest, where the server names none.
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 60.0
# Up to so much of a wait is added by chance, so that many workers do not come back at once.
JITTER = 0.25


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The server redirects nowhere: who answers so is another, and must not get the token."""

    def redirect_request(self, *_: Any) -> None:
        return None


# Requests stay inside the cluster: what HTTP_PROXY says is for the way out of it.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)


@dataclass(frozen=True)
class Answer:
    """A successful answer: its media type and its bytes."""

    content_type: str
    body: bytes


@dataclass(frozen=True)
class Transport:
    """Where the server is and how patient to be. `sleep` and `dice` are parameters for tests."""

    url: str
    token: str | None = None
    timeout_s: float = 60.0
    retries: int = 8
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    dice: Callable[[], float] = field(default=random.random, repr=False)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        accept: str = "application/json",
        wait_s: float = 0.0,
    ) -> Answer:
        """Sends one request. Every call of the API may be repeated: batches have ids, leases run
        out, acks are counted once.

        Args:
            wait_s: how long the server may hold its answer back, seconds; added to the time limit.

        Raises:
            PaddockError: for a status of 400 and above; 429 and 503 only after all retries.
            ConnectionError: where no answer came in any try.
            ValueError: where `body` holds what JSON has no word for, as NaN.
        """
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        request = urllib.request.Request(
            self.url + path, data, self._headers(accept, data), method=method
        )
        for attempt in range(self.retries + 1):
            last = attempt == self.retries
            try:
                with _opener.open(request, timeout=self.timeout_s + wait_s) as response:
                    return Answer(response.headers.get_content_type(), response.read())
            except urllib.error.HTTPError as error:
                with error:
                    refusal = PaddockError.from_body(error.code, error.read())
                if error.code not in RETRIED_STATUSES or last:
                    raise refusal from None
                asked = retry_after(error.headers)
            except (OSError, HTTPException) as error:
                if last:
                    raise ConnectionError(
                        f"{method} {self.url}{path}: no answer in {self.retries + 1} tries "
                        f"({error}); expected a Paddock server there: start it, or mend the url"
                    ) from error
                asked = None
            self.sleep(self._wait(attempt, asked))
        raise AssertionError("unreachable: the last try returns or raises")

    def _headers(self, accept: str, data: bytes | None) -> dict[str, str]:
        headers = {"accept": accept}
        if data is not None:
            headers["content-type"] = "application/json"
        if self.token is not None:
            headers["authorization"] = f"Bearer {self.token}"
        return headers

    def _wait(self, attempt: int, asked: float | None) -> float:
        wait = FIRST_WAIT_S * 2**attempt if asked is None else asked
        return min(wait, LONGEST_WAIT_S) * (1 + JITTER * self.dice())


def retry_after(headers: Message) -> float | None:
    """Seconds of `Retry-After` (RFC 9110, 10.2.3: seconds or a date); None if none is readable."""
    text = headers.get("retry-after")
    if text is None:
        return None
    if text.strip().isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return None
