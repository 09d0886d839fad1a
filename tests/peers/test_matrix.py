"""The table of real servers in the documentation is made from the last recorded tests."""

from tests.peers.matrix import PAGE, table


def test_the_page_has_the_table_of_the_recorded_results() -> None:
    assert f"<!-- matrix -->\n{table()}\n<!-- /matrix -->" in PAGE.read_text(encoding="utf-8")
