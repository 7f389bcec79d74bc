"""Corpora as files: finding them, telling what they are, decompressing them, taking records apart."""
