"""The leader's questions to connectors' classes: which tasks they want, and whether that still holds."""
