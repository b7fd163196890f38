"""What is tried again and what is not, against a server that answers as it is told."""

import json
import os
import threading
import time
import unittest
from email.message import Message
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest import mock

from paddock import Client, PaddockError
from paddock.client import DEFAULT_URL
from paddock.transport import LONGEST_WAIT_S, Transport, retry_after


def problem(status: int, code: str, **more: Any) -> tuple[int, dict[str, str], bytes]:
    body = {"status": status, "code": code, "detail": "why", "path": "tasks[0]", "retryable": True}
    return (
        status,
        {"content-type": "application/problem+json"},
        json.dumps({**body, **more}).encode(),
    )


def begun(status: int, content: bytes = b"{") -> tuple[int, dict[str, str], bytes]:
    """An answer whose connection ends before the body that its length announces."""
    return status, {"content-length": "999", "connection": "close"}, content


OK = (200, {"content-type": "application/json"}, b'{"step": 1}')


class TransportTest(unittest.TestCase):
    def setUp(self) -> None:
        self.answers: list[Any] = []
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.slept: list[float] = []
        test = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                test.seen.append((self.command, self.path, dict(self.headers.items()), body))
                answer = test.answers.pop(0)
                if answer is None:
                    return
                status, headers, content = answer
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if "content-length" not in headers:
                    self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def tearDown(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def client(self, retries: int = 3, dice: float = 0.0, token: str | None = None) -> Client:
        transport = Transport(
            self.url, token, 5, retries, sleep=self.slept.append, dice=lambda: dice
        )
        return Client(transport=transport)

    def test_429_and_503_are_tried_again_after_the_seconds_they_ask_for(self) -> None:
        for status, code in ((429, "queue_full"), (503, "draining")):
            refusal = problem(status, code)
            refusal[1]["retry-after"] = "7"
            self.answers = [refusal, OK]
            self.assertEqual(self.client().heartbeat(1), {"step": 1})
        self.assertEqual(self.slept, [7.0, 7.0])

    def test_a_retry_after_that_is_a_date_is_waited_for(self) -> None:
        refusal = problem(429, "queue_full")
        refusal[1]["retry-after"] = formatdate(time.time() + 30, usegmt=True)
        self.answers = [refusal, OK]
        self.client().heartbeat(1)
        self.assertTrue(25 < self.slept[0] <= 30, self.slept)

    def test_without_retry_after_the_waits_double_and_chance_adds_up_to_a_quarter(self) -> None:
        self.answers = [problem(503, "draining")] * 3 + [OK]
        self.client(dice=1.0).heartbeat(1)
        self.assertEqual(self.slept, [0.5 * 1.25, 1.0 * 1.25, 2.0 * 1.25])

    def test_no_wait_of_its_own_is_longer_than_the_bound(self) -> None:
        self.answers = [problem(503, "draining")] * 9 + [OK]
        self.client(retries=9).heartbeat(1)
        self.assertEqual(self.slept[-2:], [LONGEST_WAIT_S, LONGEST_WAIT_S])

    def test_a_wait_that_the_server_names_is_kept_and_one_beyond_all_patience_is_raised(
        self,
    ) -> None:
        hour, day = problem(503, "draining"), problem(503, "draining")
        hour[1]["retry-after"], day[1]["retry-after"] = "3600", "86400"
        self.answers = [hour, day]
        with self.assertRaises(PaddockError) as caught:
            self.client().heartbeat(1)
        self.assertEqual(self.slept, [3600.0])
        self.assertEqual(caught.exception.retry_after_s, 86400.0)

    def test_a_retry_after_that_nobody_can_read_is_none(self) -> None:
        for text in ("²".encode().decode("latin-1"), "²", "soon", "Mon, 99 Foo", ""):
            headers = Message()
            headers["retry-after"] = text
            self.assertIsNone(retry_after(headers), text)

    def test_every_further_try_is_a_warning_that_names_the_request_and_the_cause(self) -> None:
        self.answers = [problem(503, "draining"), None, OK]
        with self.assertLogs("paddock", "WARNING") as log:
            self.client().heartbeat(1)
        self.assertRegex(log.output[0], r"POST http://127.*/v1/heartbeat: 503 draining.*try 2 of 4")
        self.assertIn("try 3 of 4 follows in 1.0 s", log.output[1])

    def test_after_the_last_try_the_refusal_is_raised(self) -> None:
        self.answers = [problem(429, "queue_full")] * 4
        with self.assertRaises(PaddockError) as caught:
            self.client(retries=3).heartbeat(1)
        self.assertEqual(caught.exception.code, "queue_full")
        self.assertEqual(len(self.seen), 4)

    def test_no_other_status_is_tried_again(self) -> None:
        for status in (400, 401, 403, 404, 408, 409, 410, 413, 415, 422, 425, 500):
            self.answers = [problem(status, "conflict", retryable=False), OK]
            with self.assertRaises(PaddockError) as caught:
                self.client().heartbeat(1)
            self.assertEqual(caught.exception.status, status)
        self.assertEqual(self.slept, [])

    def test_a_problem_document_is_raised_field_by_field(self) -> None:
        self.answers = [problem(422, "contract_mismatch", retryable=False)]
        with self.assertRaises(PaddockError) as caught:
            self.client().heartbeat(1)
        error = caught.exception
        self.assertEqual(
            (error.status, error.code, error.path, error.detail, error.retryable),
            (422, "contract_mismatch", "tasks[0]", "why", False),
        )
        self.assertEqual(str(error), "422 contract_mismatch at tasks[0]: why")

    def test_the_page_of_a_proxy_is_kept_as_detail(self) -> None:
        self.answers = [(502, {"content-type": "text/html"}, b"<h1>Bad Gateway</h1>")]
        with self.assertRaises(PaddockError) as caught:
            self.client().heartbeat(1)
        self.assertEqual(
            (caught.exception.code, caught.exception.detail), ("", "<h1>Bad Gateway</h1>")
        )

    def test_a_refusal_whose_body_breaks_off_is_raised_with_what_there_is_of_it(self) -> None:
        self.answers = [begun(500, b"out of mem")]
        with self.assertRaises(PaddockError) as caught:
            self.client().heartbeat(1)
        self.assertEqual((caught.exception.status, caught.exception.detail), (500, "out of mem"))

    def test_an_answer_that_breaks_off_is_tried_again(self) -> None:
        self.answers = [begun(200), OK]
        self.assertEqual(self.client().heartbeat(1), {"step": 1})

    def test_an_answer_that_is_not_paddocks_is_raised_with_its_address_and_its_first_bytes(
        self,
    ) -> None:
        html = {"content-type": "text/html"}
        for status, headers, body in (
            (200, html, b"<h1>Please log in</h1>"),
            (200, OK[1], b""),
            (200, OK[1], b"{}"),
            (200, OK[1], b"[1]"),
            (200, OK[1], b'{"groups": []}'),
            (204, {}, b""),
        ):
            self.answers = [(status, headers, body)] * 2
            for ask in (lambda: self.client().heartbeat(1), lambda: self.client().lease("b")):
                with self.assertRaises(PaddockError) as caught:
                    ask()
                self.assertEqual((caught.exception.status, caught.exception.code), (status, ""))
                self.assertIn(self.url, caught.exception.detail)
                self.assertIn(repr(body), caught.exception.detail)

    def test_a_redirect_without_an_address_is_refused_too(self) -> None:
        self.answers = [(302, {}, b"")]
        with self.assertRaisesRegex(PaddockError, "302.*redirects to nowhere.*mend the url"):
            self.client().heartbeat(1)

    def test_an_id_with_any_characters_stays_one_part_of_the_path(self) -> None:
        self.answers = [(200, OK[1], b'{"groups": [], "done": false}')]
        self.client().lease("größe/4?a#b c")
        self.assertEqual(self.seen[0][1], "/v1/batches/gr%C3%B6%C3%9Fe%2F4%3Fa%23b%20c/lease")

    def test_a_url_that_leads_nowhere_is_refused_before_a_request(self) -> None:
        for url in (
            "localhost:1",
            "127.0.0.1",
            "ftp://a",
            "http://",
            "http://a:70000",
            "http://a:x",
        ):
            with self.assertRaisesRegex(ValueError, "expected http://<host>"):
                Client(url)

    def test_a_token_that_no_header_can_carry_is_refused_and_not_repeated(self) -> None:
        for token in ("secret\n", "sécret", "two words"):
            with self.assertRaisesRegex(ValueError, "token: expected printable") as caught:
                Client(self.url, token)
            self.assertNotIn(token.strip(), str(caught.exception))

    def test_an_empty_variable_is_as_good_as_none(self) -> None:
        with mock.patch.dict(os.environ, {"ROLLOUT_URL": "", "ROLLOUT_TOKEN": ""}):
            transport = Client()._transport
        self.assertEqual((transport.url, transport.token), (DEFAULT_URL, None))

    def test_a_redirect_is_not_followed_so_that_no_other_host_gets_the_token(self) -> None:
        self.answers = [(307, {"location": f"{self.url}/elsewhere"}, b""), OK]
        with self.assertRaises(PaddockError) as caught:
            self.client(token="secret").heartbeat(1)
        self.assertEqual(caught.exception.status, 307)
        self.assertEqual(len(self.seen), 1)

    def test_a_connection_that_breaks_is_tried_again_with_the_same_body(self) -> None:
        self.answers = [None, (200, OK[1], b'{"id": "b"}')]
        self.client().submit({"tasks": []})
        bodies = [body for _, _, _, body in self.seen]
        self.assertEqual(len(bodies), 2)
        self.assertEqual(bodies[0], bodies[1])
        self.assertTrue(json.loads(bodies[0])["id"])

    def test_where_nobody_listens_the_error_names_the_address_and_the_tries(self) -> None:
        transport = Transport("http://127.0.0.1:9", None, 1, 2, sleep=self.slept.append)
        with self.assertRaisesRegex(ConnectionError, r"127\.0\.0\.1:9.*3 tries"):
            Client(transport=transport).heartbeat(1)
        self.assertEqual(len(self.slept), 2)

    def test_the_token_is_sent_as_a_bearer_and_none_without_one(self) -> None:
        self.answers = [OK, OK]
        self.client(token="secret").heartbeat(1)
        self.client().heartbeat(1)
        tokens = [headers.get("Authorization") for _, _, headers, _ in self.seen]
        self.assertEqual(tokens, ["Bearer secret", None])

    def test_a_number_that_json_has_no_word_for_is_refused_before_it_is_sent(self) -> None:
        with self.assertRaises(ValueError):
            self.client().advantages({"input": {"rewards": [float("nan")]}})
        self.assertEqual(self.seen, [])
