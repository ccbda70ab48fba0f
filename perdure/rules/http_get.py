"""http.get: what a server answers to one GET."""

from __future__ import annotations

import json
from typing import Any

from perdure.contracts.base import JsonDict
from perdure.effects.http_address import open_page
from perdure.effects.http_call import Answer, place_of, read_page_url
from perdure.errors import EffectFailed, StageFailed
from perdure.rules.base import Rule, RuleContext, RuleResult

NAME = "http.get"
_MOST_CHARACTERS = 65_536


def gather_answer(arguments: JsonDict, context: RuleContext) -> RuleResult:
    """Return ``status``, ``json`` (null when the answer is none; fractions are texts) and the beginning of ``text``.

    Raises:
        UserError: the URL is none, or holds a name or password.
        NoAnswer: nobody answers, or with a 5xx; the source is tried again.
        StageFailed: it answers with a redirect.
    """
    url = read_page_url(NAME, "url", str(arguments["url"]))
    try:
        answer = open_page(url, private=bool(arguments.get("private"))).ask("GET", url)
    except EffectFailed as error:
        raise StageFailed(f"{NAME}: {error.message}") from None
    text = answer.body.decode("utf-8", "replace")[:_MOST_CHARACTERS]
    value: JsonDict = {"rule": NAME, "url": url, "status": answer.status, "json": _json_of(answer), "text": text}
    return RuleResult(value, f"{place_of(url)} answers {answer.status}")


def _json_of(answer: Answer) -> Any:
    try:
        return json.loads(answer.body, parse_float=str, parse_constant=str)
    except ValueError:
        return None


RULE = Rule(
    name=NAME,
    rule_class="source",
    run=gather_answer,
    needs=frozenset({"url"}),
    takes=frozenset({"private"}),
    about="What a server answers to one GET: `status`, `json`, `text`.",
)
