"""The two ways a command can end badly; everything else that escapes is a bug."""


class NumbenchError(Exception):
    """The work failed: the message is one line for a person. Exit code 1."""

    exit_code = 1


class BadInput(NumbenchError):
    """Wrong use or unreadable input: the message names the place and the remedy. Exit code 2."""

    exit_code = 2
