"""``python -P -m perdure.api --data FOLDER [--listen HOST:PORT]``: the API as a process."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType

from perdure.errors import PerdureError
from perdure.runtime.exit import leave
from perdure.runtime.imports import importing
from perdure.settings import read_settings

log = logging.getLogger("perdure.api")


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to stop; return an exit code."""
    parser = argparse.ArgumentParser(prog="python -m perdure.api", description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--listen", default="", metavar="HOST:PORT", help="also on TCP; goes before PERDURE_LISTEN")
    options = parser.parse_args(arguments)
    os.umask(0o077)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for chatty in ("alembic", "uvicorn"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    signal.signal(signal.SIGTERM, _stop)
    try:
        settings = read_settings(data=options.data)
        if options.listen:
            settings = replace(settings, listen=options.listen)
        with importing():
            from perdure.api.serving import run_api
        asyncio.run(run_api(settings))
    except PerdureError as error:
        sys.stderr.write(f"{error.message}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except SystemExit:
        log.info("stopped")
    return 0


def _stop(number: int, frame: FrameType | None) -> None:
    """End by unwinding, whatever is going on: uvicorn raises the signal that ended it once more when it is done."""
    raise SystemExit(0)


if __name__ == "__main__":
    leave(main())
