"""A model as a value (`spec`), and the files it is read from and written to."""
