"""What a provider's refusals and broken answers mean: may it pass, when, and what a person can do about it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from perdure.errors import ModelFailed, ModelTrouble
from perdure.models.configured import ConfiguredModel

LONGEST_WAIT_SECONDS = 86_400.0
_MAY_PASS = {408, 409, 425, 429}
_NO_MONEY = ("insufficient_quota", "billing", "credit balance")
_TEXT_LIMIT = 300


def refusal(
    model: ConfiguredModel, status: int, headers: Mapping[str, str], body: bytes, key: str
) -> ModelTrouble | ModelFailed:
    """Say what an HTTP status other than 200 means. The key is in no text, whatever the provider repeats of it."""
    said = _said(body, key)
    if status == 429 and any(word in said for word in _NO_MONEY):
        return _failed(model, status, f"has no money left: {said}", "Fill the account up, or name a fallback.")
    if status in _MAY_PASS or (status >= 500 and status != 501):
        kind = "limited" if status == 429 else "unavailable"
        return _trouble(model, kind, f"answered {status}: {said}", retry_after(headers, datetime.now(UTC)))
    if status in (401, 403):
        # Providers repeat parts of a key here: their text is not shown.
        return _failed(model, status, "refused the key", f"Look at the secret {model.key!r} that `key` names.")
    if status == 404:
        return _failed(model, status, f"knows no such model or address: {said}", "Look at `model` and `base_url`.")
    if status < 400:
        return _failed(model, status, "sends us elsewhere", "Write the final address into `base_url`.")
    return _failed(model, status, f"refused the request: {said}", "Look at `options` and `window` of the model.")


def broken(model: ConfiguredModel, error: Exception, limit_seconds: float) -> ModelTrouble:
    """Say what became of a request that got no whole answer."""
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return _trouble(model, "unavailable", f"cannot be reached ({str(error) or 'no connection in time'})")
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        return _trouble(model, "late", f"did not answer within {limit_seconds:.0f} s")
    return _trouble(model, "cut", f"broke its answer off ({str(error) or type(error).__name__})")


def malformed(model: ConfiguredModel, why: object) -> ModelTrouble:
    """Say that an answer is not what the protocol says."""
    return _trouble(model, "malformed", f"gave an answer that is none: {why}")


def refused_in_stream(model: ConfiguredModel, why: object, key: str) -> ModelTrouble:
    """Say that a provider broke its stream off with an error."""
    return _trouble(model, "unavailable", f"broke its answer off: {_clean(str(why), key)}")


def too_large(model: ConfiguredModel, limit_bytes: int) -> ModelFailed:
    """Say that an answer is larger than anything we keep."""
    what = f"gave an answer over {limit_bytes // 1_000_000} MB, which is refused"
    return _failed(model, None, what, "Set `max_output` of the model, or ask for less.")


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds until the provider wants to be asked again, from its headers; ``None``: it does not say.

    Seconds or a date (RFC 9110, 10.2.3), or OpenAI's milliseconds. At most a day; a time in the past is 0.
    """
    try:
        if "retry-after-ms" in headers:
            seconds = float(headers["retry-after-ms"]) / 1000
        elif (text := headers.get("retry-after", "")).strip().replace(".", "", 1).isdigit():
            seconds = float(text)
        else:
            seconds = (parsedate_to_datetime(text) - now).total_seconds()
    except (ValueError, TypeError):
        return None
    return min(max(seconds, 0.0), LONGEST_WAIT_SECONDS) if math.isfinite(seconds) else None


def _trouble(model: ConfiguredModel, kind: str, what: str, after: float | None = None) -> ModelTrouble:
    error = ModelTrouble(f"The model {model.name!r} ({model.label} at {model.host}) {what}.")
    error.kind, error.retry_after_seconds = kind, after
    return error


def _failed(model: ConfiguredModel, status: int | None, what: str, advice: str) -> ModelFailed:
    told = f" with {status}" if status else ""
    error = ModelFailed(f"The model {model.name!r} ({model.label} at {model.host}) {what}{told}. {advice}")
    error.status = status
    return error


def _said(body: bytes, key: str) -> str:
    """What the provider says in an error's body, on one line."""
    text = body[:10_000].decode("utf-8", "replace")
    try:
        found = json.loads(text)
        error = found.get("error", found) if isinstance(found, dict) else found
        text = error.get("message") or text if isinstance(error, dict) else str(error)
        code = error.get("code") or error.get("type") if isinstance(error, dict) else None
    except ValueError:
        code = None
    return _clean(f"{text} ({code})" if code else str(text), key)


def _clean(text: str, key: str) -> str:
    if key:
        text = text.replace(key, "[key]")
    line = " ".join(text.split())
    return (line if len(line) <= _TEXT_LIMIT else line[:_TEXT_LIMIT] + "…") or "nothing"
