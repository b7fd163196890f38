"""The client against the running server: batches, leases, acknowledgements, the trainer's words."""

import ast
import re
import uuid
from typing import Any

from paddock import Client, PaddockError, group_rows, is_scored
from paddock.transport import Transport
from tests.support import GROUP_SIZE, TROUBLE, TROUBLED, VERSIONED, HouseTest, set_faults, sums


def batch(**some: Any) -> dict[str, Any]:
    return {
        "id": f"client-{uuid.uuid4().hex}",
        "tasks": sums(0, 1),
        "group_size": 4,
        "policy": {"sampling": {"seed": 1, "max_tokens": 200}},
        **some,
    }


class ClientTest(HouseTest):
    def setUp(self) -> None:
        self.client = Client()

    def test_a_batch_without_an_id_gets_one_and_the_same_request_is_the_same_batch(self) -> None:
        request = batch()
        accepted = self.client.submit(request)
        self.assertEqual(accepted, {"id": request["id"], "groups": 2, "episodes": 8})
        self.assertEqual(self.client.submit(request), accepted)
        without = {key: value for key, value in request.items() if key != "id"}
        self.assertNotEqual(self.client.submit(without)["id"], accepted["id"])

    def test_another_request_under_the_same_id_is_a_conflict(self) -> None:
        request = batch()
        self.client.submit(request)
        with self.assertRaises(PaddockError) as caught:
            self.client.submit({**request, "group_size": 5})
        self.assertEqual((caught.exception.code, caught.exception.path), ("conflict", "id"))

    def test_a_refusal_names_the_field_and_is_not_tried_again(self) -> None:
        with self.assertRaises(PaddockError) as caught:
            self.client.submit(batch(reward={"reads": ["scor"]}))
        error = caught.exception
        self.assertEqual((error.status, error.code), (422, "contract_mismatch"))
        self.assertEqual(error.path, "reward.reads[0]")
        self.assertIn('"score"', error.detail)

    def test_the_loop_acknowledges_every_group_and_ends_with_the_batch(self) -> None:
        batch_id = self.client.submit(batch())["id"]
        tasks = sorted(group["task"] for group in self.client.groups(batch_id))
        self.assertEqual(tasks, ["arithmetic/sum-0", "arithmetic/sum-1"])
        progress = self.client.progress(batch_id)
        self.assertEqual(progress["groups"]["settled"], {"acked": 2})
        self.assertTrue(progress["done"])

    def test_resume_tells_the_progress_of_the_batch(self) -> None:
        batch_id = self.client.submit(batch())["id"]
        progress = self.client.resume(batch_id)
        self.assertEqual((progress["id"], progress["pause"]), (batch_id, None))
        for _ in self.client.groups(batch_id):
            pass

    def test_an_exception_in_the_body_hands_the_group_back_and_it_is_delivered_again(self) -> None:
        batch_id = self.client.submit(batch(tasks=sums(0)))["id"]
        with self.assertRaisesRegex(RuntimeError, "out of memory"):
            with self.client.groups(batch_id) as groups:
                for _ in groups:
                    raise RuntimeError("out of memory")
        deliveries = [group["lease"]["delivery"] for group in self.client.groups(batch_id)]
        self.assertEqual(deliveries, [2])

    def test_break_acknowledges_the_group_it_leaves_and_hands_back_those_not_looked_at(
        self,
    ) -> None:
        batch_id = self.client.submit(batch(tasks=sums(0, 1, 2)))["id"]
        self.client.progress(batch_id)
        while self.client.progress(batch_id)["groups"]["ready"] < 3:
            pass
        with self.client.groups(batch_id, max=3) as groups:
            for _ in groups:
                break
        counts = self.client.progress(batch_id)["groups"]
        self.assertEqual(
            (counts["settled"], counts["ready"], counts["leased"]), ({"acked": 1}, 2, 0)
        )

    def test_ack_and_nack_decide_at_once_and_the_loop_does_not_decide_again(self) -> None:
        batch_id = self.client.submit(batch(tasks=sums(0)))["id"]
        results = []
        with self.client.groups(batch_id) as groups:
            for group in groups:
                first = group["lease"]["delivery"] == 1
                results.append(groups.nack("not now") if first else groups.ack())
                with self.assertRaisesRegex(ValueError, "open"):
                    groups.ack()
        self.assertEqual(results, ["nacked", "acked"])

    def test_an_ack_after_the_lease_has_run_out_is_late_and_says_so_in_the_log(self) -> None:
        batch_id = self.client.submit(batch(tasks=sums(0)))["id"]
        groups = self.client.groups(batch_id, lease_s=0.05)
        group = next(groups)
        while self.client.progress(batch_id)["groups"]["leased"]:
            pass
        with self.assertLogs("paddock", "WARNING") as log:
            self.assertEqual(groups.ack(), "late")
        self.assertIn(group["id"], log.output[0])
        self.assertEqual([one["id"] for one in self.client.groups(batch_id)], [group["id"]])

    def test_a_wait_that_the_server_does_not_know_is_refused_here(self) -> None:
        for wait_s in (0, 61):
            with self.assertRaisesRegex(ValueError, "wait_s"):
                self.client.groups("any", wait_s=wait_s)

    def test_cancelled_work_stops_and_its_progress_says_so(self) -> None:
        set_faults({"kind": "hang"})
        batch_id = self.client.submit(batch())["id"]
        self.assertEqual(self.client.cancel(batch_id)["state"], "cancelled")
        self.assertEqual(list(self.client.groups(batch_id)), [])

    def test_the_trainer_tells_its_version_and_its_step(self) -> None:
        known = {"backend": "sglang", "version": 5, "previous": None, "epoch": 0}
        told = self.client.announce_policy(5, backend="sglang")
        self.assertEqual(told, {**known, "paused": False})
        paused = self.client.announce_policy(backend="sglang", pause=True)
        # Else whatever fails here would leave the backend paused for every test after it.
        self.addCleanup(self.client.announce_policy, backend="sglang", pause=False)
        self.assertEqual(paused, {**known, "paused": True})
        self.client.announce_policy(backend="sglang", pause=False)
        with self.assertRaises(PaddockError) as caught:
            self.client.announce_policy(4, backend="sglang")
        self.assertEqual(caught.exception.code, "conflict")
        self.assertEqual(self.client.heartbeat(9), {"step": 9, "checkpoint_step": None})
        self.assertEqual(self.client.heartbeat(9, 8), {"step": 9, "checkpoint_step": 8})

    def test_parser_and_estimators_answer(self) -> None:
        text = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
        parsed = self.client.parse({"id": "1", "format": "hermes", "tools": [], "text": text})
        self.assertEqual([call["name"] for call in parsed["calls"]], ["add"])
        question = {"name": "q", "estimator": "rloo", "settings": {}}
        rewards = {"rewards": [1, 0, None], "groups": ["a", "a", "a"]}
        # Leave-one-out of two: 1 - 0 and 0 - 1; the missing reward is in neither.
        answer = self.client.advantages({**question, "input": rewards})
        self.assertEqual(answer["advantages"], [1, -1, None])

    def test_a_troubled_group_gives_aligned_rows_and_none_for_the_failed_members(self) -> None:
        set_faults(*TROUBLE)
        request = batch(tasks=sums(0), group_size=GROUP_SIZE, **TROUBLED)
        [group] = list(self.client.groups(self.client.submit(request)["id"]))
        self.assert_troubled(group)
        rows = group_rows(group)
        scored = [one for one in group["episodes"] if is_scored(one)]
        self.assertEqual({row.episode for row in rows}, {one["id"] for one in scored})
        self.assertEqual(len(rows), sum(len(one["samples"]) for one in scored))
        for row in rows:
            self.assertEqual(len({len(row.ids), len(row.mask), len(row.logprobs)}), 1)
            self.assertEqual(row.mask.index(1), row.prompt_length)
            self.assertEqual(set(row.versions), {3})
        failed = [one for one in group["episodes"] if not is_scored(one)]
        self.assertEqual({one["advantage"] for one in failed}, {None})
        # Advantages of the scored alone sum to zero: the failed are in no mean.
        self.assertAlmostEqual(sum(one["advantage"] or 0.0 for one in scored), 0.0, places=9)

    def test_versions_that_a_backend_tells_reach_the_rows(self) -> None:
        request = batch(tasks=sums(0), **VERSIONED)
        [group] = list(self.client.groups(self.client.submit(request)["id"]))
        self.assertEqual({version for row in group_rows(group) for version in row.versions}, {7})

    def test_a_client_that_says_goodbye_tries_once_and_briefly(self) -> None:
        slept: list[float] = []
        patient = Client(transport=Transport("http://127.0.0.1:9", sleep=slept.append))
        patient.once().give_up("any")
        with self.assertRaisesRegex(ConnectionError, "1 tries"):
            patient.once().cancel("any")
        self.assertEqual((slept, patient.once()._transport.timeout_s), ([], 5.0))
        self.assertEqual(patient._transport.retries, 8)

    def test_an_exception_cancels_the_batch_that_nobody_waits_for_any_more(self) -> None:
        set_faults({"kind": "hang"})
        batch_id = self.client.submit(batch())["id"]
        with self.assertRaises(KeyboardInterrupt), self.client.cancelling(batch_id):
            raise KeyboardInterrupt
        self.assertEqual(self.client.progress(batch_id)["state"], "cancelled")

    def test_the_lines_of_the_docstrings_are_taken(self) -> None:
        for ask in (self.client.parse, self.client.advantages):
            [line] = re.findall(r"`(\{.*\})`", " ".join(str(ask.__doc__).split()))
            self.assertTrue(ask(ast.literal_eval(line)))

    def test_a_finished_episode_can_be_read(self) -> None:
        [group] = list(self.client.groups(self.client.submit(batch(tasks=sums(0)))["id"]))
        episode = self.client.episode(group["episodes"][0]["id"])
        self.assertEqual(episode["messages"][-1]["role"], "assistant")
