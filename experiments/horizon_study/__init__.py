"""Horizons of language models from the published study's responses."""
