"""The formats of token files, one file for each."""
