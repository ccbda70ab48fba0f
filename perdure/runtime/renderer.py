"""Renders templates' expressions in a child process that can be killed: a loop in a template costs nobody a worker."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any

from perdure.errors import SetupError, UserError

DEFAULT_LIMIT = timedelta(seconds=2)
MEMORY_LIMIT_BYTES = 1 << 30
"""Address space of the child, the interpreter included."""
_WALL_GRACE = timedelta(seconds=20)
"""Added to every limit as a last resort; also how long a new child may take. A loaded machine is slow, not broken."""
_ANSWER_LIMIT_BYTES = 256 << 20


class Renderer:
    """One warm child, started when first needed. Used from many threads, one rendering at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: _Child | None = None
        self._is_closed = False

    def render(self, value: Any, context: Mapping[str, Any], limit: timedelta = DEFAULT_LIMIT) -> Any:
        """Return ``value`` with its expressions replaced, as ``policy.expressions.render`` does.

        ``limit`` is CPU time: expressions cannot wait for anything, and a busy machine must not fail them. A child that
        meets it, or its memory limit, ends; the next call gets a new one.

        Raises:
            UserError: an expression is wrong, or takes too long or too much memory.
            SetupError: the child does not start, or this renderer is closed.
        """
        from perdure.policy.expressions import (  # with Jinja: not at a worker's start
            ExpressionError,
            find_sources,
            prune,
        )

        first = next(find_sources(value), None)
        if first is None:
            return value
        question = {"value": value, "context": prune(context, value), "seconds": limit.total_seconds()}
        with self._lock:
            answer = self._ask(question, limit)
        if answer is None:
            raise UserError(
                f"Rendering `{first[:120]}` met its limit ({limit.total_seconds():g} s of CPU, "
                f"{MEMORY_LIMIT_BYTES >> 20} MiB) and was ended. Make the template's expressions do less."
            )
        if "error" in answer:
            raise ExpressionError(str(answer["error"]))
        return answer["value"]

    def close(self) -> None:
        """End the child. May be called twice; rendering afterwards is an error."""
        with self._lock:
            self._is_closed = True
            self._drop()

    def __enter__(self) -> Renderer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, question: Mapping[str, Any], limit: timedelta) -> dict[str, Any] | None:
        if self._is_closed:
            raise SetupError("The renderer is closed: this process is ending.")
        child = self._ready_child()
        answer = None
        try:
            answer = child.ask(question, limit)
        finally:
            # Without a whole answer, half of one may still come: this child is of no more use.
            if answer is None:
                self._drop()
        return answer

    def _ready_child(self) -> _Child:
        if self._child is not None and not self._child.is_alive:
            self._drop()
        if self._child is None:
            self._child = _Child()
        return self._child

    def _drop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()


class _Child:
    """The process and its two pipes; a line of JSON each way.

    It ends when its stdin does or its CPU time is used up, so it outlives its parent by one rendering at most.
    PR_SET_PDEATHSIG would be wrong: it fires when the *thread* that started the child ends, and threads of a pool do.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-E", "-m", "perdure.runtime.renderer_child", str(MEMORY_LIMIT_BYTES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            bufsize=0,
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise SetupError("The renderer has no pipes.")
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        os.set_blocking(self._stdin.fileno(), False)
        if self._talk(b"", timedelta(0)) is None:
            self.kill()
            raise SetupError(f"The renderer does not start with {sys.executable}. Run `perdure doctor`.")

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, question: Mapping[str, Any], limit: timedelta) -> dict[str, Any] | None:
        """Return the answer; ``None`` when the child met a limit of the question."""
        line = self._talk(json.dumps(question).encode() + b"\n", limit)
        answer: dict[str, Any] | None = None if line is None else json.loads(line)
        return answer

    def kill(self) -> None:
        """End the process and reap it."""
        self._process.kill()
        self._stdin.close()
        self._stdout.close()
        self._process.wait()

    def _talk(self, question: bytes, limit: timedelta) -> bytes | None:
        """Write a line while reading one, so that no full pipe blocks either side. ``None``: no whole answer."""
        deadline = time.monotonic() + (limit + _WALL_GRACE).total_seconds()
        left, answer = memoryview(question), bytearray()
        while not answer.endswith(b"\n"):
            ready = self._wait(deadline, is_writing=bool(left))
            if not ready or len(answer) > _ANSWER_LIMIT_BYTES:
                return None
            if self._stdin.fileno() in ready:
                left = self._write(left)
            if self._stdout.fileno() in ready:
                part = os.read(self._stdout.fileno(), 1 << 20)
                answer += part
                if not part:
                    return None
        return bytes(answer)

    def _wait(self, deadline: float, *, is_writing: bool) -> set[int]:
        poll = select.poll()
        poll.register(self._stdout.fileno(), select.POLLIN)
        if is_writing:
            poll.register(self._stdin.fileno(), select.POLLOUT)
        return {number for number, _ in poll.poll(max(deadline - time.monotonic(), 0) * 1000)}

    def _write(self, left: memoryview) -> memoryview:
        try:
            return left[os.write(self._stdin.fileno(), left[: 1 << 20]) :]
        except BrokenPipeError:
            # The child is gone; reading its end of file says so.
            return left[len(left) :]
