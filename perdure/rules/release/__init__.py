"""A release by rules alone: what changed, which version follows, which files say so."""
