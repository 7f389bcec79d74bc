"""The Tokenizer, and a file for each thing that belongs to it (options, vocabulary, streams ...)."""
