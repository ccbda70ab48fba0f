"""Answers by a JSON schema: asking for them in words, and finding them in what a model said."""

from __future__ import annotations

import json
import re
from typing import Any

from perdure.contracts.base import JsonDict

_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)


def plea(schema: JsonDict) -> str:
    """Ask for one JSON object of ``schema`` in words."""
    return (
        "Answer with one JSON object that fits this JSON schema and with nothing else: no explanation, no code fence.\n"
        + json.dumps(schema, ensure_ascii=False)
    )


def unwrapped(text: str) -> str:
    """The JSON object in a text: the text itself, else what is in its first code fence or between its outer braces.

    The text comes back as it is when there is none: whoever checks it tells the model.
    """
    fence = _FENCE.search(text)
    for candidate in (text, fence[1] if fence else "", text[text.find("{") : text.rfind("}") + 1]):
        if _is_object(candidate):
            return candidate.strip()
    return text


def is_strict(schema: Any) -> bool:
    """Whether a schema is one that OpenAI takes as strict: every object closed, with all its properties required."""
    if isinstance(schema, list):
        return all(is_strict(each) for each in schema)
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        names = set(schema.get("properties", {}))
        if schema.get("additionalProperties") is not False or set(schema.get("required", [])) != names:
            return False
    return all(is_strict(each) for each in schema.values())


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
