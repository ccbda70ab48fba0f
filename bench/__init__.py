"""Measures what Perdure promises in figures, with real processes: ``make bench``, or ``python -m bench --help``."""
