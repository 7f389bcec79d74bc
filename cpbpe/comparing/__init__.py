"""What the same texts cost with several models: `cpbpe.compare`.

`subjects.py` has the models, ours and those of other libraries; `measures.py` counts; `probes.py` has texts
of its own, such as the same data in several formats; `compare.py` puts them together; `values.py` is the
result, `page.py` shows it in a terminal, and `html.py` and `plots.py` in a browser.
"""
