"""Groups that are handed back when something breaks, against a client that breaks as it is told."""

import unittest
from typing import Any

from paddock import BatchPaused, PaddockError
from paddock.groups import Groups


class Breaking:
    """Two groups in one lease; `ack` and `nack` raise what stands in `errors`."""

    def __init__(self, **errors: Exception) -> None:
        self.errors = errors
        self.nacked: list[list[str]] = []
        self.hasty = False
        self.results = ["acked"]

    def lease(self, *_: Any) -> Any:
        return {"groups": [{"id": "g1"}, {"id": "g2"}], "done": False}

    def ack(self, *groups: Any) -> Any:
        if "ack" in self.errors:
            raise self.errors["ack"]
        return self.results

    def nack(self, *groups: Any, reason: str | None = None) -> Any:
        if "nack" in self.errors:
            raise self.errors["nack"]
        self.nacked.append([one["id"] for one in groups])
        return ["nacked" for _ in groups]

    def progress(self, batch_id: str) -> Any:
        groups = {"in_flight": 0, "ready": 0, "leased": 0}
        pause = {"reason": "contract", "group": "b.g0", "message": '"score" came as "reward"'}
        return {"id": batch_id, "groups": groups, "pause": pause}

    def once(self) -> "Breaking":
        self.hasty = True
        return self


def groups_of(client: Breaking) -> Groups:
    return Groups(client, "b", 2, 300, 20)


REFUSED = PaddockError(500, "internal", "disk full")
GONE = ConnectionError("no answer")


class Paused(Breaking):
    """Has nothing to lease, and its batch has paused itself."""

    def lease(self, *_: Any) -> Any:
        return {"groups": [], "done": False}


class GroupsTest(unittest.TestCase):
    def test_a_batch_that_paused_itself_raises_with_its_words(self) -> None:
        with self.assertRaisesRegex(BatchPaused, 'contract: "score" came as "reward"') as caught:
            next(groups_of(Paused()))
        self.assertEqual((caught.exception.reason, caught.exception.group), ("contract", "b.g0"))

    def test_after_an_ack_that_failed_every_leased_group_is_handed_back(self) -> None:
        for error in (REFUSED, GONE):
            client = Breaking(ack=error)
            with self.assertRaises(type(error)), groups_of(client) as groups:
                for _ in groups:
                    pass
            self.assertEqual(client.nacked, [["g1", "g2"]])

    def test_after_an_ack_that_failed_at_the_end_of_the_body_they_are_handed_back_too(self) -> None:
        client = Breaking(ack=GONE)
        with self.assertRaises(ConnectionError), groups_of(client) as groups:
            next(groups)
        self.assertEqual(client.nacked, [["g1", "g2"]])

    def test_a_hand_back_that_failed_can_be_repeated(self) -> None:
        client = Breaking(nack=GONE)
        groups = groups_of(client)
        next(groups)
        with self.assertRaises(ConnectionError):
            groups.close()
        client.errors = {}
        groups.close()
        self.assertEqual(client.nacked, [["g1", "g2"]])

    def test_the_exception_of_the_body_goes_on_after_one_short_try_to_hand_back(self) -> None:
        for error in (REFUSED, GONE):
            client = Breaking(nack=error)
            with self.assertLogs("paddock", "WARNING") as log:
                with self.assertRaises(KeyboardInterrupt), groups_of(client) as groups:
                    for _ in groups:
                        raise KeyboardInterrupt
            self.assertTrue(client.hasty)
            self.assertIn(str(error), log.output[0])

    def test_a_duplicate_is_no_reason_for_a_warning(self) -> None:
        client = Breaking()
        client.results = ["duplicate"]
        groups = groups_of(client)
        next(groups)
        with self.assertNoLogs("paddock", "WARNING"):
            self.assertEqual(groups.ack(), "duplicate")


if __name__ == "__main__":
    unittest.main()
