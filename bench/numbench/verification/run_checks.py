"""All checks of run folders, in order: files, dataset, prompts, answers, scores, plausibility."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from numbench.certificate.outcome import find_outcomes
from numbench.errors import BadInput
from numbench.journal import find_runs, read_info
from numbench.journal_repair import verify_run
from numbench.scoring import ScoredRun, score_run
from numbench.verification.answer_checks import check_answers, check_completeness
from numbench.verification.findings import Finding, Severity, Verification, error, ok, warning
from numbench.verification.plausibility import check_plausibility
from numbench.verification.source_checks import check_dataset, check_prompts, trusted_dataset
from numbench.verification.stored_scores import check_stored_scores


def verify_runs(
    runs: Sequence[Path], on_progress: Callable[[str], None], require_complete: bool
) -> list[Verification]:
    """Implement `numbench.verification.verify`."""
    folders = list(dict.fromkeys(folder for path in runs for folder in find_runs([path])))
    results, scored_runs = [], []
    for number, folder in enumerate(folders, 1):
        on_progress(f"verifying run {number} of {len(folders)}: {folder}")
        findings = list(_check_files(folder))
        if all(finding.severity is not Severity.ERROR for finding in findings):
            try:
                scored = score_run(folder, dataset=trusted_dataset(read_info(folder)))
                findings += _check_scored(scored, require_complete)
                scored_runs.append(scored)
            except BadInput as fault:
                findings.append(error("content", str(fault)))
        results.append(Verification(folder, tuple(findings)))
    return _with_certificates(results, scored_runs)


def _check_files(folder: Path) -> Iterator[Finding]:
    state = verify_run(folder)
    for damage in state.damage:
        item = f" (item {damage.item_id})" if damage.item_id else ""
        yield error(
            "journal",
            f"{damage.path}, line {damage.line}{item}: {damage.reason}; "
            "`numbench verify --repair` keeps the readable lines",
        )
    if not state.damage:
        yield ok("journal", f"{state.responses:,} responses, every line is readable")


def _check_scored(scored: ScoredRun, require_complete: bool) -> Iterator[Finding]:
    if scored.info.horizon is None:
        yield from check_dataset(scored)
    yield from check_prompts(scored)
    yield from check_answers(scored)
    if scored.info.horizon is None:
        yield from check_completeness(scored, require_complete)
    yield from check_stored_scores(scored)
    yield from check_plausibility(scored)


def _with_certificates(
    results: Sequence[Verification], scored: Sequence[ScoredRun]
) -> list[Verification]:
    """Return the results with the outcome of each certificate added to its two runs."""
    findings: dict[Path, Finding] = {}
    for outcome in find_outcomes(scored):
        if outcome.verdict is None:
            findings[outcome.folder] = warning("certificate", f"no verdict: {outcome.reason}")
        else:
            is_equivalent = outcome.verdict == "equivalent"
            judge = ok if is_equivalent else warning
            findings[outcome.folder] = judge("certificate", f"verdict: {outcome.verdict}")
    return [
        result._replace(findings=(*result.findings, findings[result.path.parent]))
        if result.path.parent in findings
        else result
        for result in results
    ]
