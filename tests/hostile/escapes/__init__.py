"""Escapes from public write-ups, as small scripts: what each tries, where it is described, who can do it unboxed."""
