"""Client of the Paddock rollout server: submit batches, lease finished groups, train on their rows.

The adapters for trainers are modules of their own, imported by whoever has that trainer:
`paddock.slime`, `paddock.trl`, `paddock.verl`. Everything else needs the standard library alone.
"""

from paddock.client import Client
from paddock.errors import BatchPaused, PaddockError
from paddock.groups import Groups
from paddock.rows import Row, episode_rows, group_rows, is_scored

__all__ = [
    "BatchPaused",
    "Client",
    "Groups",
    "PaddockError",
    "Row",
    "episode_rows",
    "group_rows",
    "is_scored",
]
