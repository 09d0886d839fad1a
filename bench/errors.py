"""The two ways a command can end badly, and how that is said. All else that escapes is a bug."""


class NumbenchError(Exception):
    """The work failed: the message is one line for a person. Exit code 1."""

    exit_code = 1


class BadInput(NumbenchError):
    """Wrong use or unreadable input: the message names the place and the remedy. Exit code 2."""

    exit_code = 2


def printable(text: str) -> str:
    """`text` made harmless for a terminal: what is no printable character is spelt out."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
