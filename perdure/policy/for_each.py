"""``for_each``: one apply step that becomes one effect an item. Pure; all of it happens while the plan is frozen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from perdure.contracts.base import JsonDict
from perdure.contracts.template import ApplyStep
from perdure.errors import UserError

EACH = "each"
"""The item's name in expressions of the step."""

MOST_ITEMS = 500
_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")


def read_items(step: ApplyStep, value: Any) -> Iterator[tuple[str, JsonDict]]:
    """Give (effect id, item) for each item of a rendered ``for_each``; an id is ``tag.core``: of the step, of the item.

    Raises:
        UserError: the value is no list of objects, one of them has no usable ``id``, or two have the same.
    """
    if not isinstance(value, list) or len(value) > MOST_ITEMS:
        given = f"a list of {len(value)} items" if isinstance(value, list) else repr(value)[:80]
        raise UserError(f"Step {step.id!r}: `for_each` gives {given}; expected a list of at most {MOST_ITEMS} objects.")
    seen: set[str] = set()
    for place, item in enumerate(value, 1):
        name = item.get("id") if isinstance(item, dict) else None
        if not isinstance(name, str) or not _ID.fullmatch(name):
            raise UserError(
                f"Step {step.id!r}: item {place} of `for_each` is {repr(item)[:80]}; "
                "expected an object with an `id` of lower-case letters, digits and . _ -."
            )
        if name in seen:
            raise UserError(f"Step {step.id!r}: two items of `for_each` have the id {name!r}; each needs its own.")
        seen.add(name)
        yield f"{step.id}.{name}", item
