"""Datasets: settings, generation, reading and writing of dataset folders, audit of labels."""
