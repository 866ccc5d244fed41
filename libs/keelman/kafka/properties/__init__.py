"""Java's client properties: what becomes of each here."""
