"""What people want to see of a model: its settings explained, how a piece is built, its pieces as a file.

Counts and lists are a value of their own, `Tokenizer.inspect`.
"""
