"""Statistics of paired scores: pure functions on arrays, independent of runs, tasks and tables.

`docs/statistics.md` describes each method and the reasons for it.
"""
