"""Sessions: one registration of an agent each, and what its reports say of crash loops."""
