"""Text for the small models: a vocabulary without numbers, text ↔ tokens, FineWeb, perplexity."""
