"""Durable agent jobs: planned, reviewed, applied once, or taken back."""
