# SPDX-License-Identifier: MIT
"""Answers: dictionaries whose members are attributes, too."""
from __future__ import annotations

from typing import Any, Dict


def wrap(value: Any) -> Any:
    if type(value) is dict:
        return Record(value)
    if type(value) is list:
        return [wrap(item) for item in value]
    return value


class Record(Dict[str, Any]):
    """What the daemon said, whole. A member that it left out is None, if this kind of answer can have it."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return wrap(self[name])
        if name in getattr(type(self), "__annotations__", {}):
            return None
        raise AttributeError(f"{type(self).__name__} has no '{name}'; there is: {', '.join(self)}")


class Event:
    """One event of a stream: its name, its number, and what it holds."""

    def __init__(self, name: str, id: str, data: Any):
        self.name, self.id, self.data = name, id, data

    def __repr__(self) -> str:
        return f"Event({self.name!r}, {self.data!r})"
