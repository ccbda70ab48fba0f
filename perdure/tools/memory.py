"""``memory.read`` and ``memory.write``: the thread's notes, which outlast the job. Data, never instructions."""

from __future__ import annotations

from pydantic import Field

from perdure.contracts.agent import ToolOutcome
from perdure.contracts.agent_ports import Notes, ToolContext
from perdure.errors import ToolFault
from perdure.tools.base import Arguments, make_tool
from perdure.tools.output import give

NOTE_CHARACTERS = 4000
ALL_BYTES = 64_000
"""Of all notes of a thread: they are read at the beginning of every job."""
MOST_NOTES = 100


class ReadNotes(Arguments):
    """Arguments of ``memory.read``."""

    key: str = Field(default="", max_length=80, description="One note; empty: all of them.")


class WriteNote(Arguments):
    """Arguments of ``memory.write``."""

    key: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,79}$", description="Its name; the same name replaces it.")
    text: str = Field(max_length=NOTE_CHARACTERS, description="What a later job should know; empty forgets the note.")
    append: bool = Field(default=False, description="Put the text behind what the note says already.")


def read_notes(arguments: ReadNotes, context: ToolContext) -> ToolOutcome:
    """Give one note or all, by key."""
    notes = dict(_notes(context).read())
    if arguments.key:
        if arguments.key not in notes:
            raise ToolFault(f"There is no note {arguments.key!r}; there are: {', '.join(sorted(notes)) or 'none'}.")
        notes = {arguments.key: notes[arguments.key]}
    text = "\n\n".join(f"## {key}\n{notes[key]}" for key in sorted(notes))
    head = f"[{len(notes)} note{'s' * (len(notes) != 1)}]"
    return give(READ.spec, context, text.encode("utf-8", "replace"), head=head, summary=f"{len(notes)} notes")


def write_note(arguments: WriteNote, context: ToolContext) -> ToolOutcome:
    """Keep, replace, extend or forget a note. The same call again changes nothing more."""
    store = _notes(context)
    notes = dict(store.read())
    before = notes.get(arguments.key, "")
    text = _appended(before, arguments.text) if arguments.append else arguments.text
    if len(text) > NOTE_CHARACTERS:
        raise ToolFault(f"The note would have {len(text)} characters; at most {NOTE_CHARACTERS}. Write it shorter.")
    after = {**notes, arguments.key: text}
    if text and sum(len(key) + len(note.encode()) for key, note in after.items()) > ALL_BYTES:
        raise ToolFault(f"All notes together would pass {ALL_BYTES} bytes. Forget some first, with an empty text.")
    if text and len(after) > MOST_NOTES:
        raise ToolFault(f"There are {len(notes)} notes, the most there may be. Forget some first, with an empty text.")
    store.write(arguments.key, text)
    done = "kept" if text else "forgotten"
    return ToolOutcome(status="ok", text=f"Note {arguments.key} is {done}.", summary=f"note {arguments.key} {done}")


def _appended(before: str, text: str) -> str:
    if not before or before == text or before.endswith(f"\n{text}"):
        return before or text
    return f"{before}\n{text}"


def _notes(context: ToolContext) -> Notes:
    if context.notes is None:
        raise ToolFault("This job has no notes.")
    return context.notes


READ = make_tool(
    "memory.read",
    ReadNotes,
    read_notes,
    touch=lambda arguments: f"note:{arguments.key or '*'}",
    about="Read the thread's notes, which earlier jobs left.",
    effect_class="read",
    may_repeat=True,
)
WRITE = make_tool(
    "memory.write",
    WriteNote,
    write_note,
    touch=lambda arguments: f"note:{arguments.key}",
    about="Keep a note for later jobs of this thread.",
    # The notes are the thread's own and are shown to people; nothing outside of Perdure changes.
    effect_class="workspace",
    may_repeat=True,
)
