"""What users hold: the tokenizer, and what stands around it."""
