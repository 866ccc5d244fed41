"""Records that cannot be copied: their tolerance, the form of dead letters, and the replay of dead letters."""
