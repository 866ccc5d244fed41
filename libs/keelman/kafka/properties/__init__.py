"""Java's client properties, and the use of each here."""
