"""What training needs besides the algorithm: options, corpora, counts, the model file, the report."""
