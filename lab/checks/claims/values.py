"""Claims about values and bytes: equivalence, equal bits, memory, and memory that ends."""

from collections.abc import Iterator

from lab.checks.claims.common import Problems, on_gpu, rises, settings
from lab.checks.equivalence import Difference
from lab.checks.sizes import whole_too
from lab.measure.records import Record, Row
from lab.model.device import DTYPES

ROUNDED = 1 + 1e-5  # to the 6 digits that a record keeps
TOLERANCE = 0.02  # on a GPU: kernels have scratch space of their own


def prefill(record: Record) -> Problems:
    """Chunks are as accurate as the whole, write the same KV, and need no more memory."""
    length, per_token = record.parameters["prompt_tokens"], record.parameters["kv_bytes_per_token"]
    yield from _chunks(record, list(dict.fromkeys([*record.parameters["chunk_sizes"], length])))
    for row in record.rows:
        where = f"chunk {row['chunk_size']}"
        if row["kv_bytes"] != length * per_token:
            yield f"{where}: {row['kv_bytes']} bytes of KV were written, not {length} * {per_token}"
        for name, difference in _differences(row):
            problem = difference.problem(DTYPES[record.parameters["dtype"]])
            if problem:
                yield f"{where}: {name}: {problem}"
            if difference.delta > (difference.error + difference.whole_error) * ROUNDED:
                yield f"{where}: {name}: delta {difference.delta} is more than both errors: they are not of one run"
        if row["match"] is not True:
            yield f"{where}: the run itself found that it does not match"
    yield from rises(sorted(record.rows, key=lambda row: row["chunk_size"]), "peak_bytes", "with the chunk size")


def _chunks(record: Record, sizes: list[int]) -> Problems:
    """A row for each chunk size, and as many chunks as the prompt makes of that size."""
    yield from settings(record, [(size,) for size in sizes], "chunk_size")
    length = record.parameters["prompt_tokens"]
    for row in record.rows:
        size, chunks = row["chunk_size"], row["chunks"]
        if chunks != -(-length // size):
            yield f"chunk {size}: {chunks} chunks, not ceil({length} / {size})"


def _differences(row: Row) -> Iterator[tuple[str, Difference]]:
    columns = [row[f"kv_{name}"] for name in ("delta", "error", "whole_error", "scale")]
    for layer, values in enumerate(zip(*columns, strict=True)):
        yield f"KV of layer {layer}", Difference(*values)
    yield "logits", Difference(*(row[f"logits_{name}"] for name in ("delta", "error", "whole_error", "scale")))


def bits(record: Record) -> Problems:
    """Repeats are equal to the bit, and in fixed tiles all cases on a CPU; only a difference has a size."""
    alone = ["repeat", *(f"chunks of {size}" for size in record.parameters["chunk_sizes"])]
    cases = [*alone, "before others", "after others"]
    both = ("default", "fixed tiles")
    yield from settings(record, [(setting, case) for setting in both for case in cases], "setting", "case")
    for row in record.rows:
        where = f"{row['setting']}, {row['case']}"
        if row["case"] in alone and row["rows"] != record.parameters["prompt_tokens"]:
            yield f"{where}: {row['rows']} rows, of a prompt of {record.parameters['prompt_tokens']} tokens"
        if not 0 <= row["rows_that_differ"] <= row["rows"]:
            yield f"{where}: {row['rows_that_differ']} of {row['rows']} rows differ"
        if (row["rows_that_differ"] == 0) != (row["delta"] == 0):
            yield f"{where}: {row['rows_that_differ']} rows differ, by at most {row['delta']}"
        if row["case"] == "repeat" and row["rows_that_differ"]:
            yield f"{where}: {row['rows_that_differ']} rows differ from the same run"
        elif row["setting"] == "fixed tiles" and row["rows_that_differ"] and not on_gpu(record):
            yield f"{where}: {row['rows_that_differ']} rows differ in spite of the tiles"


def _is_the_ledgers(record: Record, counted: int, predicted: int) -> bool:
    """Exactly on the CPU; on a GPU kernels may return more than is used."""
    return abs(counted - predicted) <= (TOLERANCE * predicted if on_gpu(record) else 0)


def memory(record: Record) -> Problems:
    """The count is the ledger's, the allocator agrees within 2 %; chunks need less than the whole, and as much KV."""
    is_gpu = on_gpu(record)
    for row in record.rows:
        where = f"{row['attention']}, {row['prompt_tokens']} tokens in chunks of {row['chunk_size']}"
        peak, predicted, allocator = row["peak_bytes"], row["predicted_bytes"], row["allocator_bytes"]
        if not _is_the_ledgers(record, peak, predicted):
            yield f"{where}: {peak} bytes were counted, the ledger says {predicted}"
        if is_gpu != (allocator is not None):
            yield f"{where}: the allocator's figure is {allocator}, on {record.environment.get('device')}"
        elif is_gpu and abs(allocator - peak) > TOLERANCE * peak:
            yield f"{where}: {peak} bytes were counted, the allocator says {allocator}: more than 2 % apart"
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in record.rows:
        groups.setdefault((row["attention"], row["prompt_tokens"]), []).append(row)
    for (attention, length), rows in groups.items():
        where = f"{attention}, {length} tokens"
        sizes = [row["chunk_size"] for row in rows]
        if sizes != whole_too(record.parameters["chunk_sizes"], length):
            yield f"{where}: the chunk sizes are {sizes}, not those of the parameters"
        yield from rises(rows, "peak_bytes", where)
        if not rows[0]["peak_bytes"] < rows[-1]["peak_bytes"]:
            yield f"{where}: chunks of {sizes[0]} need as much as the whole"
        if len({row["kv_bytes"] for row in rows}) > 1:
            yield f"{where}: KV bytes differ between chunk sizes"
    lengths = sorted({length for _, length in groups})
    if lengths != sorted(record.parameters["lengths"]):
        yield f"the lengths are {lengths}, not those of the parameters"


def cap(record: Record) -> Problems:
    """What the ledger says fits under the cap fits, and nothing else; a refusal costs nothing but the step."""
    length, nbytes = record.parameters["prompt_tokens"], record.parameters["cap_bytes"]
    yield from _chunks(record, record.parameters["chunk_sizes"])
    for row in record.rows:
        where = f"chunk {row['chunk_size']}"
        if (row["predicted_bytes"] > nbytes) != bool(row["refused"]):
            what = "refused" if row["refused"] else "not refused"
            yield f"{where}: {row['predicted_bytes']} bytes under a cap of {nbytes} were {what}"
        if not row["refused"] and not _is_the_ledgers(record, row["peak_bytes"], row["predicted_bytes"]):
            yield f"{where}: {row['peak_bytes']} bytes were counted, the ledger says {row['predicted_bytes']}"
        done = row["computed_tokens"]
        if done > length or done % row["chunk_size"] or (done < length) != bool(row["refused"]):
            yield f"{where}: {done} of {length} tokens were computed, {'refused' if row['refused'] else 'not refused'}"
        if row["leaked_bytes"]:
            yield f"{where}: {row['leaked_bytes']} bytes were left behind"
    if len({bool(row["refused"]) for row in record.rows}) < 2:
        yield "the cap is not between chunks and whole: all were refused, or none"
    if len({row["token"] for row in record.rows}) > 1 and record.parameters["dtype"] == "float32":
        yield f"the tokens are {[row['token'] for row in record.rows]}; in float32 they are one"
