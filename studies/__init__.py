"""Studies of one body of data: a folder each. Their pages are in `results/`."""
