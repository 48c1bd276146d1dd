# SPDX-License-Identifier: MIT
"""Where the daemon is and what opens it, found as sbx finds them."""
from __future__ import annotations

import os
from typing import Optional
from urllib.parse import SplitResult, urlsplit

from .errors import InvalidRequest


def find_url(url: Optional[str]) -> SplitResult:
    url = url or os.environ.get("SANDBOX_URL") or f"http://127.0.0.1:{os.environ.get('EXECUTOR_PORT') or 8080}"
    parts = urlsplit(url.rstrip("/"))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidRequest(f"'{url}' is not http://HOST:PORT")
    return parts


def find_secret(secret: Optional[str]) -> str:
    given = secret if secret is not None else os.environ.get("SANDBOX_SECRET")
    if given:
        return given.strip()
    env = os.environ.get
    places = [(env("SANDBOX_SECRET_FILE"), ""), (env("STATE_DIR"), "secret"),
              (env("XDG_STATE_HOME"), "sandbox-executor/secret"),
              (env("HOME"), ".local/state/sandbox-executor/secret"), ("/var/lib/sandbox-executor", "secret")]
    for folder, below in places:
        if folder:
            try:
                with open(os.path.join(folder, below) if below else folder, encoding="utf-8") as f:
                    return f.readline().strip()
            except OSError:
                pass
    return ""
