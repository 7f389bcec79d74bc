"""The book: the whole algorithm in plain Python, written to be read, and the oracle of the tests."""
