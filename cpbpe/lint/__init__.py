"""What is wrong with a model, decided: pieces that no text yields, and everything else that `lint` checks.

`reach.py` decides which pieces a text can yield, and finds such a text for each, with `merging.py` (what a
text merges into, and why not), `sources.py` (what the normalizer makes of which text), `chunks.py` (what a
pattern leaves together) and `halves.py` (bytes that are no whole characters). docs/lint.md has the proof.
`checks.py` makes findings of that and of everything else in a model; `usage.py` counts the pieces in a corpus
and looks at the rows of an embedding. `findings.py` has what is said of each kind, and the report.
"""
