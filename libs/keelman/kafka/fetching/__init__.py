"""Record batches fetched: from leaders, at positions whose log is still the one that was read."""
