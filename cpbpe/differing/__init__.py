"""What is different between two models: `cpbpe.diff`.

`pieces.py` compares vocabularies, `settings.py` everything else that a model says; `same.py` decides whether
tokens must be the same; `search.py` looks for the shortest text whose tokens are not; `corpus.py` counts
documents; `diff.py` puts them together. `values.py` and `parts.py` have the parts of the result, and
`model_diff.py` the result, which `page.py` shows.
"""
