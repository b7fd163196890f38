"""Rows of groups that are written out by hand, with the numbers that the rules give."""

import unittest
from typing import Any

from paddock.rows import Row, episode_rows, group_rows


def group(*episodes: Any, version: int | None = None) -> Any:
    return {
        "id": "g",
        "policy": {"model": "m", "version_min": version, "version_max": version},
        "episodes": list(episodes),
    }


def turn(sample: int, start: int, end: int, advantage: float | None) -> Any:
    return {"sample": sample, "start": start, "end": end, "advantage": advantage, "anchor": "a"}


def episode(outcome: str, turns: list[Any], samples: list[Any], advantage: float | None) -> Any:
    scored = outcome.startswith("ok")
    return {
        "id": "e",
        "index": 0,
        "attempt": 1,
        "outcome": outcome,
        "reason": None,
        "reward": 1.0 if scored else None,
        "rewards": {"score": 1.0} if scored else None,
        "advantage": advantage,
        "turns": turns,
        "grade": None,
        "samples": samples,
    }


# Two turns in one chain: prompt 10 11, sampled 12 13, observation 14, sampled 15 16.
CHAIN = {
    "ids": [10, 11, 12, 13, 14, 15, 16],
    "mask": [0, 0, 1, 1, 0, 1, 1],
    "logprobs": [0.0, 0.0, -0.1, -0.2, 0.0, -0.3, -0.4],
    "prompt_length": 2,
    "versions": [{"version": 4, "start": 2, "end": 4}, {"version": 5, "start": 5, "end": 7}],
}


class RowsTest(unittest.TestCase):
    def test_a_chain_whose_turns_share_their_advantage_is_one_row(self) -> None:
        one = episode("ok", [turn(0, 2, 4, 0.5), turn(0, 5, 7, 0.5)], [CHAIN], 0.5)
        [row] = episode_rows(group(one), one)
        self.assertEqual(
            row,
            Row(
                group="g",
                episode="e",
                ids=CHAIN["ids"],
                mask=CHAIN["mask"],
                logprobs=CHAIN["logprobs"],
                prompt_length=2,
                versions=[4, 5],
                advantage=0.5,
                reward=1.0,
                rewards={"score": 1.0},
                truncated=False,
            ),
        )

    def test_turns_with_advantages_of_their_own_give_rows_whose_masks_part_the_chain(self) -> None:
        one = episode("ok_truncated", [turn(0, 2, 4, 0.5), turn(0, 5, 7, -1.0)], [CHAIN], 0.1)
        first, second = episode_rows(group(one), one)
        self.assertEqual((first.advantage, first.mask), (0.5, [0, 0, 1, 1, 0, 0, 0]))
        self.assertEqual((second.advantage, second.mask), (-1.0, [0, 0, 0, 0, 0, 1, 1]))
        self.assertEqual(first.logprobs, [0.0, 0.0, -0.1, -0.2, 0.0, 0.0, 0.0])
        self.assertEqual((first.versions, second.versions), ([4], [5]))
        self.assertTrue(first.truncated)

    def test_each_chain_of_a_cut_episode_is_a_row(self) -> None:
        one = episode("ok", [turn(0, 2, 4, 0.5), turn(1, 5, 7, 0.5)], [CHAIN, CHAIN], 0.5)
        masks = [row.mask for row in episode_rows(group(one), one)]
        self.assertEqual(masks, [[0, 0, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1, 1]])

    def test_a_failed_episode_gives_no_row_however_much_was_sampled(self) -> None:
        failed = episode("infra_backend", [turn(0, 2, 4, None)], [CHAIN], None)
        self.assertEqual(group_rows(group(failed)), [])

    def test_a_span_without_a_version_has_the_oldest_of_the_group(self) -> None:
        untold = {**CHAIN, "versions": [{"version": None, "start": 2, "end": 4}]}
        one = episode("ok", [turn(0, 2, 4, 0.5)], [untold], 0.5)
        self.assertEqual(episode_rows(group(one, version=3), one)[0].versions, [3])
        self.assertEqual(episode_rows(group(one), one)[0].versions, [])

    def test_a_scored_episode_without_token_ids_is_an_error_that_names_the_setting(self) -> None:
        one = episode("ok", [turn(0, 0, 0, 0.5)], [], 0.5)
        with self.assertRaisesRegex(ValueError, "model_dir"):
            episode_rows(group(one), one)
