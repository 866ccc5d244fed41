"""Java's texts, numbers, dates, maps and patterns, as Connect's users see them."""
