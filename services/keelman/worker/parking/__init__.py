"""Tasks without work: their watches, and their return when there is more."""
