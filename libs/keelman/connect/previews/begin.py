"""Names where a preview reads from: a source's data or its committed offsets, a sink's topics from either side."""

BEGINNING, COMMITTED, END = "beginning", "committed", "end"
