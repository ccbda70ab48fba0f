"""``python -m perdure`` is the command ``perdure``."""

from __future__ import annotations

if __name__ == "__main__":
    from perdure.cli.main import main

    main()
