"""One file for each format: what it says becomes a `ModelSpec`, and a `ModelSpec` is written as it says."""
