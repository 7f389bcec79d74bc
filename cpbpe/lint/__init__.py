"""What is wrong with a model, decided: pieces that no text yields, and everything else that `lint` checks.

`reach.py` decides which pieces a text can yield, and finds such a text for each (`characters.py` for models
whose symbols begin as characters, with `sources.py` for normalization; `byte_level.py` for the others).
docs/lint.md has the proof. The files that begin with `checks` make findings of that and of everything else in
a model; `usage.py` counts the pieces in a corpus and looks at the rows of an embedding.
"""
