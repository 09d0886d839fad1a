"""Run folders: their files, who may write them, and what they hold."""
