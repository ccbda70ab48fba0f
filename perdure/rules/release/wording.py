"""What a model may do to a release: choose the words of entries that come from commits. Facts stay the rules'.

An entry keeps its number, section, sources and place, and every name, number, option, path and address in its text; no
new one comes in. What a person wrote for the changelog, or in a review, is nobody's to reword.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from perdure.contracts.base import JsonDict
from perdure.rules.base import Refinement, RuleResult
from perdure.rules.release.entries import Entry, clean_text, read_entries
from perdure.rules.release.markdown import write_notes

_BY_HAND = ("u-", "r-")
"""How ids of entries begin that a person wrote."""

_CODE = re.compile(r"`([^`]*)`")
_FACTS = re.compile(
    r"""(?x)
    [a-z][a-z0-9+.-]*://[^\s<>()\[\]]+          # addresses
    | (?<!\w)[\#!@]\w[\w/.-]*\b                 # issues, people
    | (?<![\w-])--?[A-Za-z][\w-]*               # options
    | \w+(?:[._/:\\]+\w+)+                      # paths, versions, names with dots
    | \w*_\w+                                   # names_like_this
    | \w*\d\w*                                  # numbers, v2, ids of commits
    | \b[a-z]+[A-Z]\w* | \b[A-Z][a-z]+[A-Z]\w*  # namesLikeThis
    """
)
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"(?<=[\w,;:)\"'] )[\"'(]?([A-Z]\w+)")
"""A word with a capital inside of a sentence."""
_MARKUP = re.compile(r"^\s*(?:[-*+>|#]|\d+[.)])\s|<[a-zA-Z/!]|\]\(|^\s*\[")
_LEAST_ROOM = 200
"""So long a text may get however short it was; a longer one three times as long."""
_MOST_TOLD = 40


def answer_schema(release: JsonDict) -> JsonDict:
    """The schema of an answer: texts by the entries' numbers. An entry that it leaves out stays as it is."""
    number = {"type": "integer", "enum": [place for place, entry in _numbered(release) if may_reword(entry)]}
    text = {"type": "string", "minLength": 1, "maxLength": 2000}
    item = {"type": "object", "properties": {"number": number, "text": text}}
    return {"type": "object", "properties": {"entries": {"type": "array", "items": item}}}


def may_reword(entry: Entry) -> bool:
    """Whether the words of an entry are a commit's, written for other readers than a changelog's."""
    return not entry.edited_by and not entry.id.startswith(_BY_HAND)


def is_wordable(release: JsonDict) -> bool:
    """Whether there is an entry whose words may be chosen."""
    return any(may_reword(entry) for entry in read_entries(release))


def find_problems(release: JsonDict, answer: JsonDict) -> list[str]:
    """Return what an answer would change beyond words, one sentence each."""
    entries = dict(_numbered(release))
    given = [item["number"] for item in answer["entries"]]
    twice = sorted({number for number in given if given.count(number) > 1})
    problems = [f"Entry {number} is there more than once." for number in twice]
    for item in answer["entries"]:
        if item["number"] not in twice:
            changed = list(find_changes(entries[item["number"]], item["text"]))
            problems += [f"Entry {item['number']}: {' '.join(changed)}"] if changed else []
    return problems[:_MOST_TOLD]


def find_changes(entry: Entry, text: str) -> Iterator[str]:
    """Give what a new text of an entry changes beyond words."""
    if clean_text(text) != text.strip() or "\n" in text.strip():
        yield "It must stay one line."
        return
    if _MARKUP.search(text) and not _MARKUP.search(entry.text):
        yield "It must stay plain text: no list, heading, link or tag."
    if len(text) > max(_LEAST_ROOM, 3 * len(entry.text)):
        yield f"It has {len(text)} characters, far more than the {len(entry.text)} before: that is more than wording."
    old, new = _CODE.sub(r"\1", entry.text), _CODE.sub(r"\1", text)
    known = " ".join([old, entry.scope, _CODE.sub(r"\1", entry.reason)])
    lost = [*_lost(_facts(old), new), *(code for code in _CODE.findall(entry.text) if code not in new)]
    added = [*_lost(_facts(new), known), *(code for code in _CODE.findall(text) if code.strip() not in known)]
    lost += [name for name in _names(old) if name.casefold() not in _words(new)]
    added += [name for name in _names(new) if name.casefold() not in _words(known)]
    if lost:
        yield f"It must keep {_list(lost)} exactly."
    if added:
        yield f"It must not bring in {_list(added)}, which was not there."


def apply_wording(release: JsonDict, answer: JsonDict, model: str) -> RuleResult:
    """Take the texts that change words only; say of each entry what was there before, and of each refused one why."""
    entries, findings = read_entries(release), list[str]()
    worded: dict[str, str] = {}
    texts = {item["number"]: item["text"].strip() for item in reversed(answer["entries"])}
    for number, text in sorted(texts.items()):
        entry = entries[number - 1]
        changed = list(find_changes(entry, text)) if may_reword(entry) else ["It is not a model's to reword."]
        if changed:
            findings.append(f"Entry {entry.id} stays as the rules wrote it; a model's words were refused: {changed[0]}")
        elif text != entry.text:
            entries[number - 1] = replace(entry, text=text)
            worded[entry.id] = entry.text
            findings.append(f"Entry {entry.id} is worded by a model: {_quote(entry.text)} became {_quote(text)}.")
    told = f"Wording of {len(worded)} of {len(entries)} entries is a model's ({model}); all facts are the rules'."
    title = release["notes"].partition("\n")[0]
    value = {
        **release,
        "entries": [entry.to_json() for entry in entries],
        "notes": write_notes(title, entries),
        "worded": worded,
    }
    return RuleResult(value, release["title"], findings=[told, *findings])


def _numbered(release: JsonDict) -> Iterator[tuple[int, Entry]]:
    yield from enumerate(read_entries(release), start=1)


def _facts(text: str) -> list[str]:
    return [match.group().rstrip(".,:;") for match in _FACTS.finditer(text)]


def _lost(facts: Sequence[str], text: str) -> list[str]:
    there = set(_facts(text))
    return [fact for fact in facts if fact not in there]


def _names(text: str) -> list[str]:
    return [match.group(1) for match in _NAME.finditer(text)]


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}


def _list(found: Sequence[str]) -> str:
    return ", ".join(repr(one) for one in dict.fromkeys(found))


def _quote(text: str) -> str:
    return f'"{text}"'


WORDING = Refinement(schema=answer_schema, find_problems=find_problems, apply=apply_wording, is_needed=is_wordable)
