"""Tasks without work: what they wait for, and what brings them back."""
