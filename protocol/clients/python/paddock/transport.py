"""HTTP to the server: one request, tried again where that can help."""

import json
import logging
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPException, IncompleteRead
from typing import Any
from urllib.parse import urlsplit

from paddock.errors import PaddockError

logger = logging.getLogger("paddock")

RETRIED_STATUSES = (429, 503)

# Waits between tries, seconds: doubled from the first to the longest, where the server names none.
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 60.0
# A wait that the server names is kept up to this, seconds; beyond it the refusal is raised at once.
LONGEST_ASKED_S = 3600.0
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
    """A successful answer: whose it is, its status, its media type and its bytes."""

    url: str
    status: int
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

    def __post_init__(self) -> None:
        check_url(self.url)
        check_token(self.token)

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
            PaddockError: for a status of 300 and above; 429 and 503 only after all retries.
            ConnectionError: where no answer came in any try.
            ValueError: where `body` holds what JSON has no word for, as NaN.
        """
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        request = urllib.request.Request(
            self.url + path, data, self._headers(accept, data), method=method
        )
        for attempt in range(self.retries + 1):
            last = attempt == self.retries
            failure: Exception
            try:
                return _try(request, self.timeout_s + wait_s)
            except PaddockError as refusal:
                asked = refusal.retry_after_s
                if refusal.status not in RETRIED_STATUSES or last or (asked or 0) > LONGEST_ASKED_S:
                    raise
                failure = refusal
            except (OSError, HTTPException) as error:
                if last:
                    raise ConnectionError(
                        f"{method} {self.url}{path}: no answer in {self.retries + 1} tries "
                        f"({error}); expected a Paddock server there: start it, or mend the url"
                    ) from error
                asked, failure = None, error
            wait = self._wait(attempt, asked)
            logger.warning(
                "%s %s: %s; try %s of %s follows in %.1f s",
                method,
                request.full_url,
                failure,
                attempt + 2,
                self.retries + 1,
                wait,
            )
            self.sleep(wait)
        raise AssertionError("unreachable: the last try returns or raises")

    def _headers(self, accept: str, data: bytes | None) -> dict[str, str]:
        headers = {"accept": accept}
        if data is not None:
            headers["content-type"] = "application/json"
        if self.token is not None:
            headers["authorization"] = f"Bearer {self.token}"
        return headers

    def _wait(self, attempt: int, asked: float | None) -> float:
        wait = min(FIRST_WAIT_S * 2**attempt, LONGEST_WAIT_S) if asked is None else asked
        return wait * (1 + JITTER * self.dice())


def _try(request: urllib.request.Request, timeout_s: float) -> Answer:
    try:
        with _opener.open(request, timeout=timeout_s) as response:
            kind = response.headers.get_content_type()
            return Answer(request.full_url, response.status, kind, response.read())
    except urllib.error.HTTPError as error:
        with error:
            raise _refusal(request, error) from None


def _refusal(request: urllib.request.Request, error: urllib.error.HTTPError) -> PaddockError:
    if error.code < 400:
        target = error.headers.get("location") or "nowhere"
        detail = f"{request.full_url} redirects to {target}; expected the server: mend the url"
        return PaddockError(error.code, "", detail)
    try:
        body = error.read()
    except IncompleteRead as cut:
        # The status says enough: what there is of the body is told.
        body = cut.partial
    except (OSError, HTTPException):
        body = b""
    return PaddockError.from_body(error.code, body, retry_after(error.headers))


def retry_after(headers: Message) -> float | None:
    """Seconds of `Retry-After` (RFC 9110, 10.2.3: seconds or a date); None if none is readable."""
    text = headers.get("retry-after")
    if text is None:
        return None
    # isdigit() alone takes "²", which float() refuses.
    if text.strip().isascii() and text.strip().isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def check_url(url: str) -> None:
    """Refuses what no server can be reached under: better now than after all retries.

    Raises:
        ValueError: saying what was expected.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError(f"url: expected http://<host>:<port 1 to 65535>, found {url!r}")


def check_token(token: str | None) -> None:
    """Refuses a token that no header can carry; the error does not repeat it.

    Raises:
        ValueError: saying what was expected.
    """
    if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
        raise ValueError(
            "token: expected printable ASCII without spaces, found other characters; "
            "is there a line end in ROLLOUT_TOKEN?"
        )
