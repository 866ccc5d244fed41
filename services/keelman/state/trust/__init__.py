"""The installation's CA: whom it lets join, whose certificates it signs, and who may ask the state service for what."""
