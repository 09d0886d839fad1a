"""The paper's comparison of small models at a small budget: a queue of trainings, and its tables.

python -m experiments.queue runs the trainings declared in `comparison.toml` and stores their scores
in results/trained/; python -m experiments.tables writes the page from the stored scores.
"""
