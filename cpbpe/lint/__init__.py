"""What is wrong with a model: pieces that no text yields, and everything else that `lint` checks.

`reach.py` decides which pieces a text can yield, and finds such a text for each; docs/inspecting.md has the
proof. It uses `merging.py` (what a text merges into, and why a piece is not made), `sources.py` (which
texts the normalizer turns into a given one), `chunks.py` (which characters a pattern can leave in one
chunk) and `halves.py` (bytes that end or begin inside a character). `checks.py` turns the results, and
whatever else is wrong with a model, into findings. `usage.py` counts the pieces in a corpus and examines
the rows of an embedding. `findings.py` has the message of each kind of finding, and the report.
"""
