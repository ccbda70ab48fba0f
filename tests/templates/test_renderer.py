"""Rendering happens in a process of its own, with limits that the kernel keeps."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure.errors import SetupError, UserError
from perdure.policy.expressions import render
from perdure.runtime import renderer as renderer_module
from perdure.runtime.renderer import MEMORY_LIMIT_BYTES, Renderer

LOOP = "{% for a in l %}{% for b in l %}{% for c in l %}{% endfor %}{% endfor %}{% endfor %}"
NUMBERS = {"l": list(range(5000))}


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    """One renderer for the tests of this file: it must survive each of them."""
    with Renderer() as one:
        yield one


def child_of(renderer: Renderer) -> int:
    """Return the pid of the warm child."""
    renderer.render("{{ 1 }}", {})
    assert renderer._child is not None
    return renderer._child._process.pid


@pytest.mark.parametrize("value", [["{{ x }}", 1], {"a": "n-{{ x }}"}, "{{ x }}", "plain", None, 3])
@pytest.mark.parametrize("x", [1, "é\n\u202e", None, "\udcff"])
def test_the_child_gives_what_the_library_gives(renderer: Renderer, value: Any, x: Any) -> None:
    """The same value comes out as in process, whatever the text."""
    try:
        expected = render(value, {"x": x})
    except UserError as error:
        with pytest.raises(UserError) as caught:
            renderer.render(value, {"x": x})
        assert caught.value.message == error.message
    else:
        assert renderer.render(value, {"x": x}) == expected


def test_a_warm_child_is_used_again(renderer: Renderer) -> None:
    """Rendering costs no new process."""
    assert child_of(renderer) == child_of(renderer)


def test_a_rendering_without_end_is_ended_and_the_next_one_works(renderer: Renderer) -> None:
    """A loop meets the CPU limit; it is a user's error, and the renderer is as good as new."""
    before, begun = child_of(renderer), time.monotonic()
    with pytest.raises(UserError, match=r"met its limit \(0.2 s of CPU"):
        renderer.render(LOOP, NUMBERS, timedelta(seconds=0.2))
    assert time.monotonic() - begun < renderer_module._WALL_GRACE.total_seconds()
    assert renderer.render("{{ 1 }}", {}) == 1
    assert child_of(renderer) != before


def test_a_rendering_that_takes_memory_is_ended_in_its_own_process(renderer: Renderer) -> None:
    """Text that multiplies itself costs the child its life, not the worker its memory."""
    bomb = "{{ s | replace('a', s) | replace('a', s) | replace('a', s) | length }}"
    with pytest.raises(UserError, match="met its limit"):
        renderer.render(bomb, {"s": "a" * 3000}, timedelta(seconds=5))
    assert renderer.render("{{ 1 }}", {}) == 1


def test_the_memory_of_the_child_is_limited(renderer: Renderer) -> None:
    """The kernel keeps the limit, whatever the interpreter does."""
    limits = Path(f"/proc/{child_of(renderer)}/limits").read_text()
    [line] = [line for line in limits.splitlines() if line.startswith("Max address space")]
    assert line.split()[3] == str(MEMORY_LIMIT_BYTES)


def test_a_child_that_stands_still_is_given_up(renderer: Renderer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stopped process uses no CPU; the wall clock is the last resort."""
    pid = child_of(renderer)
    monkeypatch.setattr(renderer_module, "_WALL_GRACE", timedelta(seconds=0.1))
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(UserError, match="met its limit"):
        renderer.render("{{ 1 }}", {}, timedelta(seconds=0.1))
    monkeypatch.undo()
    assert renderer.render("{{ 1 }}", {}) == 1


def test_a_big_value_goes_both_ways(renderer: Renderer) -> None:
    """A history of megabytes neither blocks on a full pipe nor counts as text that was made."""
    commits = [{"subject": "x" * 1000, "id": str(number)} for number in range(5000)]
    assert renderer.render({"from": "{{ gather }}"}, {"gather": {"commits": commits}}) == {"from": {"commits": commits}}


def test_a_child_that_was_killed_is_replaced(renderer: Renderer) -> None:
    """Whoever kills the child, the next rendering gets a new one."""
    pid = child_of(renderer)
    assert renderer._child is not None
    os.kill(pid, signal.SIGKILL)
    renderer._child._process.wait()
    assert renderer.render("{{ 1 }}", {}) == 1


def test_threads_share_a_child_and_it_outlives_the_thread_that_started_it() -> None:
    """Answers never get mixed up, and the end of a pool's thread ends nothing."""
    with Renderer() as renderer:
        starter = threading.Thread(target=child_of, args=(renderer,))
        starter.start()
        starter.join()
        assert renderer._child is not None
        pid = renderer._child._process.pid
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda number: renderer.render("{{ n }}", {"n": number}), range(50)))
        assert found == list(range(50))
        assert child_of(renderer) == pid


def test_a_closed_renderer_has_no_child_and_says_so() -> None:
    """Closing twice is fine; rendering afterwards is an error that names the reason."""
    renderer = Renderer()
    pid = child_of(renderer)
    renderer.close()
    renderer.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(SetupError, match="closed"):
        renderer.render("{{ 1 }}", {})


@pytest.mark.parametrize("busy", [False, True])
def test_the_child_ends_with_its_parent(busy: bool) -> None:
    """A parent that is killed leaves no child, not even one in the middle of a loop."""
    program = f"""
import sys
from perdure.runtime.renderer import Renderer
renderer = Renderer()
renderer.render("{{{{ 1 }}}}", {{}})
child, write = renderer._child, renderer._child._write
print(child._process.pid, flush=True)
def write_and_tell(left):
    left = write(left)
    if not left:
        print("asked", flush=True)
    return left
child._write = write_and_tell
if {busy}:
    renderer.render({LOOP!r}, {{"l": list(range(5000))}})
sys.stdin.read()
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    watch = os.pidfd_open(pid)
    # The question is in the pipe now: the child works on it, whether its parent lives or not.
    assert not busy or parent.stdout.readline() == b"asked\n"
    parent.kill()
    parent.communicate()
    # A pidfd reads as ready when its process has ended: no polling of process lists.
    assert select.select([watch], [], [], 30)[0]
    os.close(watch)


def test_the_child_sees_no_environment(renderer: Renderer, monkeypatch: pytest.MonkeyPatch) -> None:
    """No token in the worker's environment reaches the process that evaluates templates."""
    monkeypatch.setenv("PERDURE_TOKEN", "s3cret")
    with Renderer() as fresh:
        environment = Path(f"/proc/{child_of(fresh)}/environ").read_bytes()
    assert b"s3cret" not in environment
