"""What the worker's topics say, and who writes there."""
