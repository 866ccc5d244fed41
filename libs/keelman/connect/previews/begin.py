"""Names the start of a preview: a source's data or its committed offsets, a sink's topics from either end."""

BEGINNING, COMMITTED, END = "beginning", "committed", "end"
