"""Tag forms as tools write them: ``v${version}``, ``v$version``, ``v{version}``, a prefix."""

from __future__ import annotations

import re
from typing import Any

from perdure.errors import UserError
from perdure.rules.release.tags import parse_tag_form

_HOLES = re.compile(r"\$\{ ?version ?\}|<%= ?version ?%>|\$version\b|\{version\}|\$major\.\$minor\.\$patch\$prerelease")


def read_tag_text(value: Any) -> str:
    """Return the form, with ``{version}``; empty when the text is none that is understood."""
    text = _HOLES.sub("{version}", value) if isinstance(value, str) else ""
    try:
        return str(parse_tag_form(text))
    except UserError:
        return ""


def prefixed(prefix: Any) -> str:
    """Return the form of a prefix before the version; empty when it is no text."""
    return read_tag_text(f"{prefix}{{version}}") if isinstance(prefix, str) else ""
