"""Child processes: started, tied to their starter, found again, slowed down and ended."""
