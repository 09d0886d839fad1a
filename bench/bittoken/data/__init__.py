"""Training data made on the fly, exactly, from the same task definitions as the benchmark."""
