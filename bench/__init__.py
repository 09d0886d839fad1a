"""numbench measures how well language models compute with numbers, and at what token price."""

__version__ = "0.1.0"
