"""Dead letters: written, read, and sent back."""
