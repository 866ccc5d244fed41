"""Records on their way: converted, transformed, measured, and judged by the error policy."""
