"""Tests of `numbench.forensics`."""
