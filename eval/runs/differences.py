"""What two runs were made with, and where that is not the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

# A longer value is a fingerprint or a text: of two of them one learns nothing.
_LONGEST = 40

Differences = dict[str, tuple[object, object]]


def differences(one: Mapping[str, Any], other: Mapping[str, Any], before: str = "") -> Differences:
    """`{"answer.seed": (0, 1)}`: every leaf of the two that is not the same."""
    found: Differences = {}
    for key in dict.fromkeys((*one, *other)):
        x, y = one.get(key), other.get(key)
        if isinstance(x, Mapping) and isinstance(y, Mapping):
            found |= differences(x, y, f"{before}{key}.")
        elif x != y:
            found[f"{before}{key}"] = (x, y)
    return found


def told(found: Mapping[str, tuple[object, object]], both: str = "{}, {}") -> list[str]:
    """Each in words, `both` values with it where they can be read: "answer.seed (0, 1)"."""
    return [_told(name, values, both) for name, values in found.items()]


def _told(name: str, values: tuple[object, object], both: str) -> str:
    texts = [json.dumps(value, ensure_ascii=False) for value in values]
    return f"{name} ({both.format(*texts)})" if max(map(len, texts)) <= _LONGEST else name
