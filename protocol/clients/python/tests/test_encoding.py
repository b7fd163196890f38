"""The same group comes as JSON with lists and as MessagePack with arrays."""

import sys
import unittest
import uuid
from typing import Any
from unittest import mock

from paddock import Client, group_rows
from paddock.encoding import choose_encoding
from tests.support import FOLDER, HouseTest, sums

PACKAGES = ("msgpack", "numpy")


def without_packages() -> Any:
    return mock.patch.dict(sys.modules, dict.fromkeys(PACKAGES))


class EncodingTest(unittest.TestCase):
    def test_without_the_packages_it_is_json_and_the_log_names_what_is_missing(self) -> None:
        with without_packages(), self.assertLogs("paddock", "INFO") as log:
            self.assertEqual(choose_encoding().name, "json")
        self.assertIn("msgpack and numpy not installed", log.output[0])

    def test_one_of_the_two_is_not_enough(self) -> None:
        with mock.patch.dict(sys.modules, {"msgpack": unittest, "numpy": None}):
            self.assertEqual(choose_encoding().name, "json")


class DeliveryTest(HouseTest):
    def test_arrays_of_messagepack_hold_what_the_lists_of_json_hold(self) -> None:
        batch_id = f"encoding-{uuid.uuid4().hex}"
        with without_packages():
            as_json = Client()
        # Installed packages go first; the readers of this folder stand in where there are none.
        with mock.patch.object(sys, "path", [*sys.path, str(FOLDER / "fast")]):
            as_msgpack = Client()
        self.assertEqual((as_json.encoding, as_msgpack.encoding), ("json", "msgpack"))
        policy = {"sampling": {"seed": 2, "max_tokens": 200}}
        as_json.submit({"id": batch_id, "tasks": sums(0), "group_size": 4, "policy": policy})
        [listed] = as_json.lease(batch_id, wait_s=20)["groups"]
        as_json.nack(listed)
        [packed] = as_msgpack.lease(batch_id, wait_s=20)["groups"]
        as_msgpack.ack(packed)
        self.assertEqual(set(packed), set(listed))
        for one, other in zip(packed["episodes"], listed["episodes"], strict=True):
            self.assertIsNotNone(one["samples"])
            for array, plain in zip(one["samples"], other["samples"], strict=True):
                self.assertNotIsInstance(array["ids"], list)
                self.assertIsInstance(plain["ids"], list)
        self.assertEqual(group_rows(packed), group_rows(listed))
        lists = {row.episode: type(row.ids[0]) for row in group_rows(packed)}
        self.assertEqual(set(lists.values()), {int})
