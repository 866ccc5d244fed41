"""Several state services of one database: who leads, and what they tell each other."""
