"""The small models of the paper: number encodings, network, training and checkpoints.

Requires PyTorch (the extra `local`).
"""
