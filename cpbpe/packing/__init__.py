"""Corpora to token files: `cpbpe.pack` writes them in the formats of trainers, `PackedTokens` reads them."""
