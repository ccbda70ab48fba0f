"""Judges the release rules on real histories: ``python -m bench.release FILE``."""
