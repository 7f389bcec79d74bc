"""What users hold: the Tokenizer, and a file for each thing around it (options, vocabulary, streams ...)."""
