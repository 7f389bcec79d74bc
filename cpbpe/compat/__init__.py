"""Doing as other packages do, call by call, for programs that were written for them."""
