"""What training needs beside the algorithm: options, corpora, counts, the model file, the report."""
