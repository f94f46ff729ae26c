"""A prefill report for people and for programs."""

from typing import Any

from lab.checks.equivalence import PrefillReport, PrefillRow
from lab.model.device import dtype_name

HEADER = (
    "chunk", "chunks", "median ms", "spread", "peak bytes", "KV bytes", "|dKV|", "|dlogits|", "error", "match",
)  # fmt: skip


def as_table(report: PrefillReport) -> str:
    """One line per row, the whole prompt last.

    `spread` is the slowest run less the fastest; |dKV| and |dlogits| are the largest differences from the whole pass;
    `error` is the largest error against higher precision, as a multiple of the whole pass's.
    """
    rows = [HEADER, *(cells(row, report) for row in report.rows)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows]
    lines += [f"  chunk {row.chunk_size}: {problem}" for row in report.rows for problem in row.problems]
    head = f"{report.prompt_tokens} prompt tokens, {dtype_name(report.dtype)}, {report.attention} attention"
    return "\n".join([head, *lines])


def cells(row: PrefillRow, report: PrefillReport) -> tuple[str, ...]:
    return (
        f"{row.chunk_size}",
        f"{row.chunks}",
        f"{row.timing.median:.1f}",
        f"{row.timing.spread:.1f}",
        f"{row.peak_bytes}",
        f"{row.kv_bytes}",
        f"{max(d.delta for d in row.kv):.1e}",
        f"{row.logits.delta:.1e}",
        f"{row.error_ratio:.2f}x",
        "yes" if row.ok else "NO",
    )


def as_json(report: PrefillReport) -> dict[str, Any]:
    """Bytes, milliseconds, and differences in the units of the quantity itself."""
    return {
        "prompt_tokens": report.prompt_tokens,
        "dtype": dtype_name(report.dtype),
        "attention": report.attention,
        "kv_bytes_formula": report.kv_bytes,
        "ok": report.ok,
        "rows": [row_as_json(row) for row in report.rows],
    }


def row_as_json(row: PrefillRow) -> dict[str, Any]:
    return {
        "chunk_size": row.chunk_size,
        "chunks": row.chunks,
        "median_ms": row.timing.median,
        "min_ms": row.timing.min,
        "max_ms": row.timing.max,
        "peak_bytes": row.peak_bytes,
        "kv_bytes": row.kv_bytes,
        "kv_delta": [d.delta for d in row.kv],
        "kv_error": [d.error for d in row.kv],
        "kv_whole_error": [d.whole_error for d in row.kv],
        "logits_delta": row.logits.delta,
        "logits_error": row.logits.error,
        "logits_whole_error": row.logits.whole_error,
        "match": row.ok,
        "problems": list(row.problems),
    }
