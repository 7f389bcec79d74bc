"""A model as a value (`spec`), whether it is valid, and the files it is read from and written to."""
