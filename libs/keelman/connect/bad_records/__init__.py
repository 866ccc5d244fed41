"""Records that cannot be copied: what is tolerated, how dead letters look, and which of them are replayed."""
