"""The whole algorithm in plain Python, written to be read: the oracle of the tests, and an engine."""
