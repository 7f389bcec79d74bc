"""What the same texts cost with several models: `cpbpe.compare`.

`subjects.py` has the models, ours and those of other libraries; `measures.py` counts; `probes.py` has texts
of its own, such as the same data in several formats; `compare.py` puts them together; `values.py` has
the numbers, and `comparison.py` the result, which `page.py` shows in a terminal, and `html.py` with
`plots.py` in a browser.
"""
