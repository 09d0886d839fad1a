"""Tests of the scripts that write the pages of the studies."""
