# SPDX-License-Identifier: MIT
"""What can go wrong. A program that fails is no error: that is a result."""
from __future__ import annotations

import json
from typing import Any, Mapping, Optional


class SandboxError(Exception):
    """Every error of this package. `hint` says what may help."""

    def __init__(self, message: str, hint: str = "", status: int = 0, code: str = "", request_id: str = "",
                 details: Any = None):
        super().__init__(f"{message} ({hint})" if hint else message)
        self.message, self.hint, self.status = message, hint, status
        self.code, self.request_id, self.details = code, request_id, details


class ConnectionFailed(SandboxError):
    """Nobody listens there, or the connection broke."""


class InvalidRequest(SandboxError):
    """The request makes no sense to the daemon: 400, 405, 413, 422 and the like."""


class Unauthorized(SandboxError):
    """401: the secret is missing or wrong."""


class Forbidden(SandboxError):
    """403: the operator does not allow it, or this host cannot do it."""


class NotFound(SandboxError):
    """404: there is no such thing (any more)."""


class Conflict(SandboxError):
    """409: not in this state."""


class Busy(SandboxError):
    """429 or 503: a limit is reached; `retry_after` seconds may help."""

    retry_after: float = 0


class ServerFailed(SandboxError):
    """The daemon or its host failed: 500 and above."""


class FunctionFailed(SandboxError):
    """A function that was called by `Function` has failed; `type` is the program's own."""

    def __init__(self, type: str, message: str, stack: str = "", result: Any = None):
        super().__init__(f"{type}: {message}")
        self.type, self.stack, self.result = type, stack, result


_BY_STATUS = {401: Unauthorized, 403: Forbidden, 404: NotFound, 409: Conflict, 429: Busy, 503: Busy}


def refusal(status: int, headers: Mapping[str, str], body: bytes) -> SandboxError:
    """What an answer that is not 2xx becomes."""
    said: Any = {}
    try:
        said = json.loads(body)
    except ValueError:
        pass
    if isinstance(said, dict) and isinstance(said.get("error"), dict):
        said = said["error"]
    if not isinstance(said, dict):
        said = {}

    def first(*names: str) -> str:
        return next((said[n] for n in names if isinstance(said.get(n), str) and said[n]), "")

    text = body.decode("utf-8", "replace").strip()
    message = first("error_detail", "message", "error", "description", "detail") or text or f"status {status}"
    kind = _BY_STATUS.get(status) or (ServerFailed if status >= 500 else InvalidRequest)
    error = kind(message, first("hint", "solution"), status, first("error_code", "code"),
                 first("request_id") or headers.get("x-request-id", ""), said.get("detail"))
    if isinstance(error, Busy):
        try:
            error.retry_after = float(headers.get("retry-after", "0"))
        except ValueError:
            pass
    return error
