"""The results of the tests with real servers, and the table of docs/running.md made from them."""

import json
from pathlib import Path

MATRIX = Path(__file__).with_name("matrix.json")
PAGE = Path(__file__).parents[2] / "docs" / "running.md"

FEATURES = (
    "plain answers",
    "`--stream`",
    "`--few-shot`",
    "`--structured`",
    "`--samples`, `--temperature`, `--seed`",
    "`--reasoning low`",
    "`--api responses`",
    "`--api responses --structured`",
    "`--tools calculator`",
    "`--dataset forms`, `--dataset context`",
    "`--dry-run` tells the context",
    "a wrong model name",
    "a prompt longer than the context",
    "`--max-tokens` above the context",
)
"""What is tried, in the order of the table."""


def table() -> str:
    """Return the table in Markdown: a row per feature, a column per server."""
    servers = json.loads(MATRIX.read_text())
    rows = [
        ["", *servers],
        ["---"] * (1 + len(servers)),
        ["package", *(each["version"] for each in servers.values())],
        ["tried on", *(each["date"] for each in servers.values())],
        *(
            [name, *(each["features"].get(name, "not tried") for each in servers.values())]
            for name in FEATURES
        ),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def write() -> None:
    """Write the table into the page."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition("<!-- matrix -->\n")
    after = rest.partition("<!-- /matrix -->")[2]
    marked = f"<!-- matrix -->\n{table()}\n<!-- /matrix -->"
    PAGE.write_text(before + marked + after, encoding="utf-8")
