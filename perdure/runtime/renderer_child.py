"""The process that renders: a question a line on stdin, an answer a line on stdout. See ``renderer.py`` beside it."""

from __future__ import annotations

import json
import resource
import signal
import sys
from typing import Any

from perdure.errors import UserError
from perdure.policy.expressions import render

_OPEN_FILES = 16


def main() -> None:
    """Limit this process, say that it is ready, answer until stdin ends."""
    memory = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES))
    _answer({"ready": True})
    for line in sys.stdin.buffer:
        _answer(_render(json.loads(line)))


def _render(question: dict[str, Any]) -> dict[str, Any]:
    # SIGPROF keeps its default: the kernel ends this process in the middle of whatever it computes, C code included.
    signal.setitimer(signal.ITIMER_PROF, question["seconds"])
    try:
        return {"value": render(question["value"], question["context"])}
    except UserError as error:
        return {"error": error.message}
    except MemoryError:
        raise SystemExit(1) from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _answer(answer: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
