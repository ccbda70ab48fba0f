"""Telling people: the words of a message, and apprise, which carries it."""
