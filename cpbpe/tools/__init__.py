"""Reports, comparisons and pages about models, as plain functions and values.

- `reports.py`: what a model is, how a piece is built, what is wrong with a model, as lines for a terminal;
- `built.py`: how a piece is merged from single characters;
- `vocabulary_file.py`: the vocabulary as a file;
- `compare.py`, `compared_models.py`, `comparison.py`: `cpbpe.compare`, the models it loads, and its result;
- `diff.py`, `differing_text.py`, `orders.py`: `cpbpe.diff`, the search for a short text whose tokens differ,
  and whether two models merge alike;
- `page.py`, `browser/`: the page that shows what models do with a text;
- `chat.py`: chat templates as tables, for the page.
"""
