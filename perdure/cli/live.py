"""A line that grows while work goes on, with a spinner behind it on a terminal."""

from __future__ import annotations

import threading
import time
from itertools import cycle
from types import TracebackType

from perdure.cli.paper import Paper, Row, text_of, text_width
from perdure.contracts.visible import visible

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TICK_SECONDS = 0.1
SAY_AFTER_SECONDS = 5
"""From then on the spinner tells how long it has been."""

_HEARD = 200
"""Characters of what is heard that are kept."""

_BACK = "\r\x1b[2K"


class LiveLine:
    """Items set one behind the other, broken where the line is full; ``busy`` names what is going on now.

    In a pipe the same items come out without spinner and codes.
    """

    def __init__(self, paper: Paper, *, indent: str = "  ", gap: str = "   ") -> None:
        self.paper = paper
        self._indent = indent
        self._gap = gap
        self._done = ""
        self._used = 0
        self._busy = ""
        self._heard = ""
        self._since = 0.0
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._spinner: threading.Thread | None = None

    def __enter__(self) -> LiveLine:
        if self.paper.moves:
            self._spinner = threading.Thread(target=self._spin, name="spinner", daemon=True)
            self._spinner.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._spinner is not None:
            self._spinner.join()
        self.end()

    def add(self, *spans: str | tuple[str, str]) -> None:
        """Put an item behind the others, on a new line where it would not fit."""
        width = sum(text_width(text_of(span)) for span in spans)
        with self._lock:
            gap = self._gap if self._used else self._indent
            if self._used > len(self._indent) and self._used + len(gap) + width > self.paper.width:
                self._break()
                gap = self._indent
            self._write(gap + self.paper.paint(*spans), len(gap) + width)

    def start(self, *spans: str | tuple[str, str]) -> None:
        """Begin a fresh line at the left edge."""
        with self._lock:
            self._break()
            self._write(self.paper.paint(*spans), sum(text_width(text_of(span)) for span in spans))

    def say(self, row: Row) -> None:
        """Write a whole line of its own."""
        with self._lock:
            self._break()
            self.paper.line(*row)

    def busy(self, what: str) -> None:
        """Name what is going on; the spinner stands behind it. Empty: nothing is."""
        with self._lock:
            if what != self._busy:
                self._busy, self._since = what, time.monotonic()
            self._show(FRAMES[0])

    def hear(self, text: str) -> None:
        """Show the end of what somebody is saying behind the spinner, as far as there is room. Empty: it is over."""
        with self._lock:
            self._heard = (self._heard + text.replace("\n", " "))[-_HEARD:] if text else ""

    def end(self) -> None:
        """Finish the line, and the spinner with it."""
        with self._lock:
            self._busy = self._heard = ""
            self._show("")
            self._break()

    def _write(self, painted: str, width: int) -> None:
        if self.paper.moves:
            self.paper.write(_BACK + self._done + painted)
        else:
            self.paper.write(painted)
        self._done += painted
        self._used += width
        if self.paper.moves and self._used >= self.paper.columns:
            # The terminal has wrapped it: there is no way back to its beginning, so it is not drawn again.
            self.paper.write("\n")
            self._done, self._used = "", 0

    def _break(self) -> None:
        if self.paper.moves:
            self.paper.write(_BACK + self._done)
        if self._used:
            self.paper.write("\n")
        self._done, self._used = "", 0

    def _spin(self) -> None:
        for frame in cycle(FRAMES):
            if self._stop.wait(TICK_SECONDS):
                return
            with self._lock:
                if self._busy:
                    self._show(frame)

    def _show(self, frame: str) -> None:
        if not self.paper.moves:
            return
        tail = self._tail(frame)
        room = self.paper.columns - 1 - self._used
        self.paper.write(_BACK + self._done + (self.paper.paint((tail, "busy")) if text_width(tail) <= room else ""))

    def _tail(self, frame: str) -> str:
        if not self._busy:
            return ""
        seconds = int(time.monotonic() - self._since)
        waited = f" {seconds} s" if seconds >= SAY_AFTER_SECONDS else ""
        tail = f"{self._gap if self._used else self._indent}{self._busy} {frame}{waited}"
        room = self.paper.columns - 4 - self._used - text_width(tail)
        heard = visible(self._heard.strip())[-room:] if room > 10 else ""  # each character is one column or two
        while heard and text_width(heard) > room:
            heard = heard[1:]
        return f"{tail}  {heard}" if heard else tail
