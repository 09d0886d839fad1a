"""The page that compares the difficulty of v1 and study-like with that of the published items."""
