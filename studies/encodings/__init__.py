"""The nine desiderata of number encodings, measured."""
