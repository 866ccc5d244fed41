"""Record batches as whole things: packed, queued, sent in order, in transactions where asked for."""
