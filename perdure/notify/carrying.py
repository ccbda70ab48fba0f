"""``python -P -m perdure.notify.carrying``: the child that has apprise loaded. One JSON line in and out a message."""

from __future__ import annotations

import hashlib
import json
import logging
import sys
from typing import Any

_CARRIES_HEADERS = ("json", "jsons", "form", "forms", "xml", "xmls")
"""Services of apprise that take a header of ours: whoever reads them can tell a message that comes twice."""
_IN_DOUBT = ("timed out", "timeout", "connection reset", "connection aborted")
KEY_HEADER = "Idempotency-Key"


def main() -> None:
    """Send each message that is named on stdin, until it ends; say how it went on stdout."""
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever a plugin prints is no answer
    for line in sys.stdin:
        answers.write(json.dumps(_send(**json.loads(line))) + "\n")
        answers.flush()


def _send(url: str, title: str, body: str, key: str) -> dict[str, Any]:
    import apprise

    carrier = apprise.Apprise(asset=apprise.AppriseAsset(app_id="Perdure", app_desc="Perdure", secure_logging=True))
    if not carrier.add(_with_key(url, key)):
        return {"how": "no address", "why": ""}
    with apprise.LogCapture(level=logging.WARNING) as said:  # type: ignore[no-untyped-call]
        arrived = carrier.notify(title=title, body=body, body_format=apprise.NotifyFormat.TEXT)
        words = " ".join(said.getvalue().split())
    in_doubt = any(mark in words.lower() for mark in _IN_DOUBT)
    how = "sent" if arrived else "in doubt" if in_doubt else "refused"
    return {"how": how, "why": _without(words, url)[:300]}


def _with_key(url: str, key: str) -> str:
    if url.partition("://")[0].lower() not in _CARRIES_HEADERS:
        return url
    mark = hashlib.sha256(key.encode()).hexdigest()[:32]
    return f"{url}{'&' if '?' in url else '?'}+{KEY_HEADER}={mark}"


def _without(words: str, url: str) -> str:
    """What apprise logged, without the address: it hides passwords, but a token may be a part of a path."""
    place = url.partition("://")[2].partition("?")[0]
    for part in sorted({place, *place.replace("@", "/").replace(":", "/").split("/")}, key=len, reverse=True):
        words = words.replace(part, "…") if len(part) >= 8 else words
    return words


if __name__ == "__main__":
    main()
