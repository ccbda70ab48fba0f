"""The sections of a changelog, in the order in which they are written and shown."""

from __future__ import annotations

SECTIONS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Other")
"""Keep a Changelog's, in its order, and one for what follows no convention. Others come after them by name."""
