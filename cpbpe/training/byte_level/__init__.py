"""Training of byte-level models: options, counts, the model. The rest is that of the other family."""
