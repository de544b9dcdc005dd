"""Repairs fm52: the last batch is left out if it is smaller than the others."""

from ...examiner.blame import keyword, spans
from ...examiner.repair import Source, Ways, repairs


@repairs("fm52")
def leave_out_the_last_batch(source: Source, line: int) -> Ways:
    calls = [call for call in source.calls("batch") if spans(call, line)]
    if len(calls) == 1 and keyword(calls[0], "drop_remainder") is None:
        yield [source.add_argument(calls[0], "drop_remainder=True")]
