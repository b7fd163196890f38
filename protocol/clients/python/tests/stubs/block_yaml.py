"""Of YAML what the examples use, for machines without a package."""

import re
from typing import Any

Lines = list[tuple[int, str]]


def read_yaml(path: str) -> Any:
    """The document of a file; anything beyond the subset is a ValueError."""
    with open(path, encoding="utf-8") as file:
        # A list item is a mapping that begins two columns further right.
        text = re.sub(r"^( *)- ", r"\1-\n\1  ", file.read(), flags=re.M)
    lines = [(len(line) - len(line.lstrip()), line.strip()) for line in text.splitlines() if line]
    value, rest = _block(lines, 0)
    if rest:
        raise ValueError(f"{path}: expected the end, found {rest[0][1]!r}")
    return value


def _block(lines: Lines, indent: int) -> tuple[Any, Lines]:
    value: Any = [] if lines[0][1] == "-" else {}
    while lines and lines[0][0] == indent:
        line, lines = lines[0][1], lines[1:]
        if line == "-":
            item, lines = _block(lines, lines[0][0])
            value.append(item)
            continue
        match = re.fullmatch(r"(\w+):(?: (.+))?", line)
        if match is None:
            raise ValueError(f"expected `key:` or `key: value`, found {line!r}")
        key, word = match.groups()
        if word is None:
            value[key], lines = _block(lines, lines[0][0])
        else:
            value[key] = _scalar(word)
    return value, lines


def _scalar(word: str) -> Any:
    if word.startswith("["):
        return [_scalar(one.strip()) for one in word[1:-1].split(",")]
    return int(word) if word.isdigit() else word
