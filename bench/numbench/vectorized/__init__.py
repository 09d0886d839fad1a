"""The nine paper tasks in arrays: thousands of questions at a time.

The samplers of `numbench.tasks` define the items; few-shot examples and plugin tasks use them.
Everything here is their fast equal: it gives the same items in the same order, byte for byte
(tests/vectorized/test_equivalence.py).
"""
