"""Training rows of a delivered group: token chains, each with one advantage for its trained ids."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from paddock.wire import Episode, Group, Sample, Turn


@dataclass(frozen=True, slots=True)
class Row:
    """One row for a trainer: `ids`, `mask` and `logprobs` of one length, mask 1 where to train.

    Attributes:
        prompt_length: ids before the first that was sampled; the response begins there.
        logprobs: at sampling time, 0.0 where mask is 0.
        versions: policy version of each run of trained ids, oldest to newest; empty where nobody
            knows it.
        advantage: the server's, equal for every trained id of the row.
        reward: scalar reward of the episode; rewards: its named parts.
        truncated: True where a limit of length or turns ended the episode.
    """

    group: str
    episode: str
    ids: list[int]
    mask: list[int]
    logprobs: list[float]
    prompt_length: int
    versions: list[int]
    advantage: float
    reward: float
    rewards: dict[str, float | None]
    truncated: bool


def is_scored(episode: Episode) -> bool:
    """True for an episode with a reward. Every other one failed: no mean, no row."""
    return episode["outcome"] in ("ok", "ok_truncated")


def group_rows(group: Group) -> list[Row]:
    """Rows of all scored episodes, in their order."""
    return [row for episode in group["episodes"] for row in episode_rows(group, episode)]


def episode_rows(group: Group, episode: Episode) -> list[Row]:
    """The rows of an episode: none if it failed, else one for each unbroken token chain.

    Where the estimator gives turns their own advantages (GiGPO), a chain comes once for each
    advantage, with mask 1 only on the turns that have it: the rows sum to the loss that per-token
    advantages would give.

    Raises:
        ValueError: where the episode has turns and no token ids: its backend was given no
            `model_dir`.
    """
    if not is_scored(episode):
        return []
    if episode["turns"] and not episode["samples"]:
        raise ValueError(
            f"episode {episode['id']}: expected token ids, found none; "
            "set model_dir of the backend in paddock.yaml, so that the server keeps tapes"
        )
    return [
        _row(group, episode, sample, advantage, turns)
        for number, sample in enumerate(episode["samples"])
        for advantage, turns in _by_advantage(episode, number)
    ]


def as_list(values: Any) -> list[Any]:
    """A list or a numpy array as a list of Python numbers."""
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _by_advantage(episode: Episode, number: int) -> Iterable[tuple[float, list[Turn]]]:
    groups: dict[float, list[Turn]] = {}
    for turn in episode["turns"]:
        if turn["sample"] == number and turn["advantage"] is not None:
            groups.setdefault(turn["advantage"], []).append(turn)
    return groups.items()


def _row(
    group: Group, episode: Episode, sample: Sample, advantage: float, turns: list[Turn]
) -> Row:
    sampled = as_list(sample["mask"])
    logprobs = as_list(sample["logprobs"])
    trained = {place for turn in turns for place in range(turn["start"], turn["end"])}
    # The tape's own mask has the last word; the turns only choose among what was sampled.
    mask = [bit if place in trained else 0 for place, bit in enumerate(sampled)]
    assert episode["reward"] is not None
    return Row(
        group=group["id"],
        episode=episode["id"],
        ids=as_list(sample["ids"]),
        mask=mask,
        logprobs=[float(value) if bit else 0.0 for value, bit in zip(logprobs, mask, strict=True)],
        prompt_length=sample["prompt_length"],
        versions=_versions(group, sample, trained),
        advantage=float(advantage),
        reward=float(episode["reward"]),
        rewards=episode["rewards"] or {},
        truncated=episode["outcome"] == "ok_truncated",
    )


def _versions(group: Group, sample: Sample, trained: set[int]) -> list[int]:
    """Where the backend told no version, the group's oldest: too old errs on the safe side."""
    spans = [span for span in sample["versions"] if span["start"] in trained]
    versions = [
        group["policy"]["version_min"] if span["version"] is None else span["version"]
        for span in spans
    ]
    return [version for version in versions if version is not None]
