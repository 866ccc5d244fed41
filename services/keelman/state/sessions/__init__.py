"""Sessions: one registration of an agent each, and its reports of crash loops."""
