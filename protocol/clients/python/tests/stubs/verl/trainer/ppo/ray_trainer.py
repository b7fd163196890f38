"""What verl's `_validate` makes of the outputs (verl/trainer/ppo/ray_trainer.py)."""

from typing import Any


def validation_lists(outputs: list[Any], scores: list[float]) -> dict[str, list[Any]]:
    """The scores and every key of `reward_extra_info`, each with one entry for each sample."""
    lists: dict[str, list[Any]] = {"reward": list(scores)}
    for key in outputs[0].extra_fields["reward_extra_info"]:
        values = [one.extra_fields["reward_extra_info"][key] for one in outputs]
        lists.setdefault(key, []).extend(values)
    for key, values in lists.items():
        assert len(values) == len(scores), f"{key}: {len(values)=}, {len(scores)=}"
    return lists
