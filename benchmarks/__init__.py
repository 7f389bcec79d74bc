"""Benchmarks of cpbpe beside its rivals; `benchmarks/README.md` says how to run them."""
