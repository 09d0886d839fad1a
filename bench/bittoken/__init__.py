"""The paper's small models: number encodings, network, training and checkpoints. Needs torch."""
