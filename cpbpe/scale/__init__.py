"""Counting, training, encoding and packing on the machines of a Ray or Spark cluster.

`cpbpe.scale.ray` and `cpbpe.scale.spark` have the same calls. What is done to a batch of rows is in
`counting.py` and `encoding.py`, which know neither of them. All that can fail on many machines is left
to these engines.
"""
