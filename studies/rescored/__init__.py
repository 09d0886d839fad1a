"""The paper's raw responses, scored again by exact answers."""
