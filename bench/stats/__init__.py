"""Statistics of paired scores: pure functions that know nothing of runs, tasks or tables.

What each of them computes, and why, stands in `docs/statistics.md`.
"""
