"""Counting, training, encoding and packing on the machines of a Ray or Spark cluster.

`cpbpe.scale.ray` and `cpbpe.scale.spark` have the same calls, which are in `cluster.py`. What is done with a
batch of rows is in `counting.py` and `encoding.py`. These three depend on neither Ray nor Spark. Failures of
machines are left to Ray and Spark.
"""
