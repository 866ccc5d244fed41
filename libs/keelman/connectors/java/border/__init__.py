"""Records and values across the border between Java and Python, field by field: the slow way, where none else goes."""
