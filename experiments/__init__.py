"""The paper's comparison of small models at a stated budget: a queue of trainings, and its tables.

python -m experiments.queue trains what `comparison.toml` declares, and keeps in results/trained/
what was measured; python -m experiments.tables writes the page from what is kept.
"""
