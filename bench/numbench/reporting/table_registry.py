"""Registry of a report's tables: `TABLES`, and the tables of installed packages.

A table of another package is a `TableSpec`, registered as an entry point in the group
`numbench.tables`. The report writes it to `tables/NAME.csv`, `.md` and `.tex` and shows it in
`report.html`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from numbench import jsonl
from numbench.plugins import load_plugins
from numbench.reporting import (
    budget_tables,
    certificate_tables,
    comparison_tables,
    convention_table,
    horizon_tables,
    metamorphic,
    other_computations,
    prompt_effects,
    repeated_samples,
    score_tables,
    summary_table,
)
from numbench.reporting.coverage import COVERAGE_CAPTION, COVERAGE_HEADER, coverage_rows
from numbench.reporting.registration import check_names, describe_error
from numbench.reporting.report_data import ReportData, RunKind
from numbench.reporting.report_warnings import ReportWarning
from numbench.reporting.table_model import (
    SCORE_TABLES,
    RowGroup,
    ScoreTableSpec,
    TextRow,
    TextTable,
    to_csv,
    to_latex,
    to_markdown,
)

ENTRY_POINTS = "numbench.tables"

FORMATS = ("csv", "md", "tex")


class TableContent(NamedTuple):
    """The cells of a table, all of them text.

    header: the column names. row_groups: the rows, each as long as the header. text_columns:
    how many columns are text; the others are numbers, and `report.html` sorts them as such.
    notes: paragraphs after the caption. csv: header and rows of the CSV file, if they differ.
    """

    header: TextRow
    row_groups: Sequence[RowGroup]
    text_columns: int = 1
    notes: Sequence[str] = ()
    csv: tuple[TextRow, Sequence[TextRow]] | None = None


class TableSpec(NamedTuple):
    """A table of the report.

    name: stem of its files, of lower-case letters, digits, `_` and `-`. title, caption: shown
    above it. build: makes its content, None if the table does not apply to the runs. on_page:
    whether `report.html` shows it. row_per_run: whether it has one row for each run in their
    order, so that the page can filter by run. needs: the kind of runs that it is about.
    """

    name: str
    title: str
    caption: str
    build: Callable[[ReportData], TableContent | None]
    on_page: bool = True
    row_per_run: bool = False
    needs: RunKind = "scores"


class BuiltTable(NamedTuple):
    """A table with its files: name → content."""

    spec: TableSpec
    text: TextTable
    files: dict[str, str]


def _value_table(spec: ScoreTableSpec) -> TableSpec:
    def build(data: ReportData) -> TableContent:
        table = spec.with_tasks(data.tasks)
        header = score_tables.value_header(table)
        rows = score_tables.value_rows(table, data.entries)
        return TableContent(
            header,
            score_tables.value_groups(
                table, data.entries, data.published, data.heading, data.item_offsets
            ),
            text_columns=2,
            notes=score_tables.published_notes(table, data.published, data.item_offsets),
            # The CSV file has the measured rows only.
            csv=(header, rows),
        )

    # The page has its own version of these tables, with values and bounds.
    return TableSpec(spec.name, spec.title, spec.caption, build, on_page=False)


def _bounds_table(spec: ScoreTableSpec) -> TableSpec:
    def build(data: ReportData) -> TableContent:
        table = spec.with_tasks(data.tasks)
        rows = score_tables.estimate_rows(table, data.entries)
        return TableContent(
            score_tables.value_header(table),
            [RowGroup(data.heading, rows)],
            text_columns=2,
            notes=[score_tables.BOUNDS_NOTE],
            csv=score_tables.bounds_csv(table, data.entries),
        )

    title = f"{spec.title} with 95 % bounds"
    return TableSpec(f"{spec.name}_ci", title, spec.caption, build, on_page=False)


def _summary(data: ReportData) -> TableContent | None:
    if not summary_table.has_means(data):
        return None
    return TableContent(
        summary_table.SUMMARY_HEADER,
        [RowGroup(data.heading, summary_table.summary_rows(data))],
        text_columns=summary_table.SUMMARY_TEXT_COLUMNS,
        csv=(summary_table.SUMMARY_CSV_HEADER, summary_table.summary_csv_rows(data)),
        notes=comparison_tables.not_compared_notes(data),
    )


def _table_of_rows(
    data: ReportData,
    header: TextRow,
    rows: Sequence[TextRow],
    text_columns: int,
    csv: tuple[TextRow, Sequence[TextRow]] | None = None,
) -> TableContent | None:
    """Return a table with one group of rows, None without rows."""
    groups = [RowGroup(data.heading, rows)]
    return TableContent(header, groups, text_columns, csv=csv) if rows else None


def _coverage(data: ReportData) -> TableContent:
    groups = [RowGroup(data.heading, coverage_rows(data.runs))]
    return TableContent(COVERAGE_HEADER, groups, text_columns=4)


def _conventions(data: ReportData) -> TableContent | None:
    if not data.conventions:
        return None
    return TableContent(
        convention_table.CONVENTIONS_HEADER,
        [RowGroup(data.heading, convention_table.convention_rows(data.conventions))],
        text_columns=convention_table.CONVENTIONS_TEXT_COLUMNS,
        notes=[score_tables.BOUNDS_NOTE],
    )


def _certificates(data: ReportData) -> TableContent | None:
    if not data.certificates:
        return None
    return TableContent(
        certificate_tables.CERTIFICATES_HEADER,
        certificate_tables.certificate_groups(data.certificates),
        text_columns=certificate_tables.CERTIFICATES_TEXT_COLUMNS,
        notes=[certificate_tables.certificate_sentence(each) for each in data.certificates],
        csv=(
            certificate_tables.CERTIFICATES_CSV_HEADER,
            certificate_tables.certificate_csv_rows(data.certificates),
        ),
    )


def _comparisons(data: ReportData) -> TableContent:
    return TableContent(
        comparison_tables.COMPARISONS_HEADER,
        comparison_tables.comparison_groups(data),
        text_columns=2,
        notes=comparison_tables.not_compared_notes(data),
        csv=(
            comparison_tables.COMPARISONS_CSV_HEADER,
            comparison_tables.comparison_csv_rows(data),
        ),
    )


def _overall(data: ReportData) -> TableContent:
    return TableContent(
        comparison_tables.OVERALL_HEADER,
        [RowGroup(data.heading, comparison_tables.overall_rows(data))],
        text_columns=3,
        notes=comparison_tables.not_compared_notes(data),
    )


def _ranks(data: ReportData) -> TableContent:
    return TableContent(
        comparison_tables.ranks_header(data),
        [RowGroup(data.heading, comparison_tables.ranks_rows(data))],
        text_columns=3,
        notes=comparison_tables.not_compared_notes(data),
    )


def _rank_sets(data: ReportData) -> TableContent:
    return TableContent(
        comparison_tables.ranks_header(data),
        [RowGroup(data.heading, comparison_tables.rank_set_rows(data))],
        text_columns=3,
        notes=comparison_tables.not_compared_notes(data),
    )


def _samples(data: ReportData) -> TableContent | None:
    rows = repeated_samples.samples_rows(data.runs, data.repeated_samples)
    return _table_of_rows(data, repeated_samples.SAMPLES_HEADER, rows, 3)


def _pass_at_k(data: ReportData) -> TableContent | None:
    if not data.repeated_samples:
        return None
    header = repeated_samples.pass_at_k_header(data.repeated_samples)
    rows = repeated_samples.pass_at_k_rows(data.runs, data.repeated_samples)
    is_incomplete = any(row.complete < row.items for row in data.repeated_samples)
    notes = [repeated_samples.INCOMPLETE_NOTE] if is_incomplete else []
    return TableContent(header, [RowGroup(data.heading, rows)], text_columns=3, notes=notes)


def _prompt_effects(data: ReportData) -> TableContent | None:
    if not data.prompt_effects:
        return None
    rows = prompt_effects.effect_rows(data.runs, data.prompt_effects)
    return TableContent(
        prompt_effects.EFFECTS_HEADER,
        [RowGroup(data.heading, rows)],
        text_columns=prompt_effects.EFFECTS_TEXT_COLUMNS,
        notes=[note]
        if (note := prompt_effects.describe_prompts(data.runs, data.prompt_effects))
        else [],
    )


def _prompt_spread(data: ReportData) -> TableContent | None:
    if not data.prompt_spreads:
        return None
    rows = prompt_effects.spread_rows(data.runs, data.prompt_spreads)
    return TableContent(
        prompt_effects.SPREAD_HEADER,
        [RowGroup(data.heading, rows)],
        text_columns=prompt_effects.SPREAD_TEXT_COLUMNS,
    )


def _metamorphic(data: ReportData) -> TableContent | None:
    if not data.metamorphic_results:
        return None
    rows = metamorphic.metamorphic_rows(data.runs, data.metamorphic_results)
    return TableContent(
        metamorphic.METAMORPHIC_HEADER,
        [RowGroup(data.heading, rows)],
        text_columns=metamorphic.METAMORPHIC_TEXT_COLUMNS,
        notes=[metamorphic.describe_forms(data.metamorphic_results)],
    )


def _budget_steps(data: ReportData) -> TableContent | None:
    rows = budget_tables.step_rows(data.budgets)
    csv = budget_tables.STEPS_CSV_HEADER, budget_tables.step_csv_rows(data.budgets)
    columns = budget_tables.STEPS_TEXT_COLUMNS
    return _table_of_rows(data, budget_tables.STEPS_HEADER, rows, columns, csv)


def _budget_thresholds(data: ReportData) -> TableContent | None:
    rows = budget_tables.threshold_rows(data.budgets)
    csv = budget_tables.THRESHOLDS_CSV_HEADER, budget_tables.threshold_csv_rows(data.budgets)
    columns = budget_tables.THRESHOLDS_TEXT_COLUMNS
    return _table_of_rows(data, budget_tables.THRESHOLDS_HEADER, rows, columns, csv)


def _efficiency(data: ReportData) -> TableContent | None:
    rows = budget_tables.efficiency_rows(data.budgets)
    csv = budget_tables.EFFICIENCY_CSV_HEADER, budget_tables.efficiency_csv_rows(data.budgets)
    columns = budget_tables.EFFICIENCY_TEXT_COLUMNS
    return _table_of_rows(data, budget_tables.EFFICIENCY_HEADER, rows, columns, csv)


def _findings(data: ReportData) -> TableContent | None:
    rows = other_computations.finding_rows(data.matches)
    columns = other_computations.FINDINGS_TEXT_COLUMNS
    return _table_of_rows(data, other_computations.FINDINGS_HEADER, rows, columns)


def _other_computations(data: ReportData) -> TableContent | None:
    rows = other_computations.count_rows(data.matches)
    csv = other_computations.COUNTS_CSV_HEADER, other_computations.count_csv_rows(data.matches)
    columns = other_computations.COUNTS_TEXT_COLUMNS
    return _table_of_rows(data, other_computations.COUNTS_HEADER, rows, columns, csv)


def _horizons(data: ReportData) -> TableContent | None:
    rows = horizon_tables.horizon_rows(data.horizons)
    csv = horizon_tables.HORIZONS_CSV_HEADER, horizon_tables.horizon_csv_rows(data.horizons)
    columns = horizon_tables.HORIZONS_TEXT_COLUMNS
    return _table_of_rows(data, horizon_tables.HORIZONS_HEADER, rows, columns, csv)


def _horizon_sizes(data: ReportData) -> TableContent | None:
    rows = horizon_tables.size_rows(data.horizons)
    csv = horizon_tables.SIZES_CSV_HEADER, horizon_tables.size_csv_rows(data.horizons)
    columns = horizon_tables.SIZES_TEXT_COLUMNS
    return _table_of_rows(data, horizon_tables.SIZES_HEADER, rows, columns, csv)


SUMMARY = TableSpec("summary", "Summary", summary_table.SUMMARY_CAPTION, _summary, on_page=False)
COVERAGE = TableSpec("coverage", "Coverage", COVERAGE_CAPTION, _coverage, on_page=False)
HORIZONS = TableSpec(
    "horizons",
    horizon_tables.HORIZONS_TITLE,
    horizon_tables.HORIZONS_CAPTION,
    _horizons,
    on_page=False,
    needs="horizons",
)
TABLES: tuple[TableSpec, ...] = (
    SUMMARY,
    *(table(spec) for spec in SCORE_TABLES for table in (_value_table, _bounds_table)),
    TableSpec(
        "conventions",
        convention_table.CONVENTIONS_TITLE,
        convention_table.CONVENTIONS_CAPTION,
        _conventions,
    ),
    TableSpec(
        "certificates",
        certificate_tables.CERTIFICATES_TITLE,
        certificate_tables.CERTIFICATES_CAPTION,
        _certificates,
    ),
    TableSpec(
        "comparisons",
        "Comparisons",
        comparison_tables.COMPARISONS_CAPTION,
        _comparisons,
        on_page=False,
    ),
    TableSpec(
        "overall",
        comparison_tables.OVERALL_NAME,
        comparison_tables.OVERALL_CAPTION,
        _overall,
        on_page=False,
        row_per_run=True,
    ),
    TableSpec("ranks", "Ranks", comparison_tables.RANKS_CAPTION, _ranks, row_per_run=True),
    TableSpec(
        "rank_sets",
        "Rank sets",
        comparison_tables.RANK_SETS_CAPTION,
        _rank_sets,
        row_per_run=True,
    ),
    TableSpec(
        "samples",
        "Repeated samples",
        repeated_samples.SAMPLES_CAPTION,
        _samples,
    ),
    TableSpec(
        "pass_at_k",
        "pass@k and majority vote",
        repeated_samples.PASS_AT_K_CAPTION,
        _pass_at_k,
    ),
    TableSpec(
        "prompt_effects",
        "Effects of prompts",
        prompt_effects.EFFECTS_CAPTION,
        _prompt_effects,
    ),
    TableSpec(
        "prompt_spread",
        "Prompt spread",
        prompt_effects.SPREAD_CAPTION,
        _prompt_spread,
    ),
    TableSpec(
        "metamorphic",
        "Same question, another form",
        metamorphic.METAMORPHIC_CAPTION,
        _metamorphic,
    ),
    TableSpec("budget_steps", "Price of a point", budget_tables.STEPS_CAPTION, _budget_steps),
    TableSpec(
        "budget_thresholds",
        "Tokens for 50 and 90 %",
        budget_tables.THRESHOLDS_CAPTION,
        _budget_thresholds,
    ),
    TableSpec(
        "efficiency",
        "Price of a correct digit",
        budget_tables.EFFICIENCY_CAPTION,
        _efficiency,
        row_per_run=True,
    ),
    TableSpec(
        "findings",
        "What wrong answers are equal to",
        other_computations.FINDINGS_CAPTION,
        _findings,
    ),
    TableSpec(
        "other_computations",
        "Other computations",
        other_computations.COUNTS_CAPTION,
        _other_computations,
    ),
    COVERAGE,
    HORIZONS,
    TableSpec(
        "horizon_sizes",
        horizon_tables.SIZES_TITLE,
        horizon_tables.SIZES_CAPTION,
        _horizon_sizes,
        on_page=False,
        needs="horizons",
    ),
)
"""The built-in tables, in the order of the page."""


def all_tables() -> list[TableSpec]:
    """Return `TABLES`, then the tables of installed packages by entry-point name.

    Raises BadInput if one of these cannot be loaded, has an invalid name, or the name of another.
    """
    plugins = [spec for _, spec in load_plugins(ENTRY_POINTS, TableSpec)]
    check_names(ENTRY_POINTS, [spec.name for spec in TABLES], [spec.name for spec in plugins])
    return [*TABLES, *plugins]


def build_tables(data: ReportData) -> tuple[list[BuiltTable], list[ReportWarning]]:
    """Build all tables that apply, and a warning for each failed table of another package."""
    tables: list[BuiltTable] = []
    warnings: list[ReportWarning] = []
    for spec in (spec for spec in all_tables() if data.has(spec.needs)):
        try:
            table = build_table(spec, data)
        except Exception as error:
            if spec in TABLES:
                raise
            text = f"Table {spec.name} omitted: {describe_error(error)}"
            warnings.append(ReportWarning(text, "information"))
            continue
        if table is not None:
            tables.append(table)
    return tables, warnings


def write_tables(tables: Sequence[BuiltTable], folder: Path) -> None:
    """Write the tables, and remove those that only an earlier report wrote to `folder`."""
    for table in tables:
        for name, text in table.files.items():
            jsonl.write_atomically(folder / name, text.encode())
    written = {table.spec.name for table in tables}
    for spec in all_tables():
        if spec.name not in written:
            for ending in FORMATS:
                (folder / f"{spec.name}.{ending}").unlink(missing_ok=True)


def build_table(spec: TableSpec, data: ReportData) -> BuiltTable | None:
    """Build one table with its files, None if it does not apply.

    Raises ValueError if a row is not as long as the header.
    """
    content = spec.build(data)
    if content is None:
        return None
    for row in (row for group in content.row_groups for row in group.rows):
        if len(row) != len(content.header):
            raise ValueError(f"a row has {len(row)} cells, the header {len(content.header)}")
    text = TextTable(
        spec.name,
        spec.title,
        content.header,
        content.text_columns,
        content.row_groups,
        (spec.caption, *content.notes, *data.notes_about(spec.needs)),
    )
    header, rows = content.csv or (content.header, text.rows)
    files = {
        f"{spec.name}.csv": to_csv(header, rows),
        f"{spec.name}.md": to_markdown(text),
        f"{spec.name}.tex": to_latex(text),
    }
    return BuiltTable(spec, text, files)
