"""A leaderboard: a static web site of runs, with a page per run."""

from numbench.leaderboard.site import DEFAULT_TITLE, Leaderboard, write_leaderboard

__all__ = ["DEFAULT_TITLE", "Leaderboard", "write_leaderboard"]
