"""Several state services of one database: which of them leads, and what they send each other."""
