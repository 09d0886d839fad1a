"""Other people's tools: our benchmark in them, and our runs in their formats.

Every module here that needs such a tool imports it where it is used, or is imported by that tool
alone; numbench runs without any of them.
"""
