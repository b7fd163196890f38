"""The two methods of `datasets` that the examples use; a "parquet" file here holds JSON lines."""

import json
from collections.abc import Iterator
from typing import Any


class Dataset:
    def __init__(self, rows: list[dict[str, Any]]):
        self.rows = rows

    @classmethod
    def from_list(cls, rows: list[dict[str, Any]]) -> "Dataset":
        assert all(set(row) == set(rows[0]) for row in rows)
        return cls(rows)

    def to_parquet(self, path: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)
