"""Models: what is unknown stops a budget, keys are in no text, a cut answer is none, a turn converts what is new."""

from __future__ import annotations

from tests.promises.kept import Kept

COST = "Cost is linear and capped; unknown price or usage counts as a stop."
AUTHORITY = "Least authority: secrets reach only the activity that uses them."
KNOWN = "At most once, and known: what is no whole answer is not taken for one."

_TROUBLE = "perdure/models/trouble.py"
_ON_ASKING = "tests/models/test_asking.py"
_ON_TROUBLE = "tests/models/test_trouble.py"
_ON_CONFIGURED = "tests/models/test_configured.py"

KEPT: tuple[Kept, ...] = (
    Kept(
        COST,
        "perdure/models/prices.py",
        "    if usage.input_tokens is None or usage.output_tokens is None:\n        return None\n",
        "    if usage.input_tokens is None or usage.output_tokens is None:\n        return 0\n",
        f"{_ON_ASKING}::test_unsaid_usage_is_unknown",
    ),
    Kept(
        COST,
        "perdure/models/prices.py",
        "    return model.provider in _LISTED and not model.base_url\n",
        "    return model.provider in _LISTED\n",
        f"{_ON_CONFIGURED}::test_price_comes_from_settings_then_from_the_public_list",
    ),
    Kept(
        COST,
        "perdure/models/fragments.py",
        "        if found is not None:\n",
        "        if False:\n",
        f"{_ON_ASKING}::test_message_is_converted_once",
    ),
    Kept(
        COST,
        "perdure/models/exchange.py",
        "        if _size(reading) > ANSWER_LIMIT_BYTES:\n",
        "        if False:\n",
        f"{_ON_TROUBLE}::test_answer_of_ten_megabytes_is_refused",
    ),
    Kept(
        AUTHORITY,
        _TROUBLE,
        '        text = text.replace(key, "[key]")\n',
        "        text = text.strip()\n",
        f"{_ON_TROUBLE}::test_key_is_in_no_error_and_no_log",
    ),
    Kept(
        AUTHORITY,
        "perdure/models/configured.py",
        '        if "@" in parts.netloc:\n',
        "        if False:\n",
        f"{_ON_CONFIGURED}::test_wrong_model_is_refused_without_its_values",
    ),
    Kept(
        KNOWN,
        "perdure/models/chat.py",
        "        if self._finish is None:\n            return None\n",
        "",
        f"{_ON_TROUBLE}::test_stream_without_its_end_is_cut",
    ),
    Kept(
        KNOWN,
        "perdure/models/anthropic.py",
        "        if not self._ended:\n            return None\n",
        "",
        f"{_ON_TROUBLE}::test_stream_without_its_end_is_cut",
    ),
    Kept(
        KNOWN,
        _TROUBLE,
        "    error.kind, error.retry_after_seconds = kind, after\n",
        "    error.kind = kind\n",
        f"{_ON_TROUBLE}::test_passing_refusal_says_when_to_ask_again",
    ),
)
