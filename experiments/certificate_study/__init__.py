"""Certificates, checked with the study's responses: equal difficulty, error rates and power."""
