"""``python -P -m perdure.runtime.run_worker --data FOLDER``: the application's worker as a process."""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from perdure import application
from perdure.errors import PerdureError
from perdure.runtime.exit import leave
from perdure.runtime.imports import importing
from perdure.runtime.ready import WORKER, tell_ready
from perdure.settings import read_settings


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the worker until it is told to stop; returns an exit code."""
    parser = argparse.ArgumentParser(prog="python -m perdure.runtime.run_worker", description=__doc__)
    parser.add_argument("--data", type=Path)
    options = parser.parse_args(arguments)
    os.umask(0o077)
    try:
        settings = read_settings(data=options.data)
        with importing():
            from perdure.runtime.journal import sign_out

            worker = application.load("worker")
        worker.main(settings, functools.partial(tell_ready, settings, WORKER))
        sign_out(settings.journal)
    except PerdureError as error:
        sys.stderr.write(f"{error.message}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    leave(main())
