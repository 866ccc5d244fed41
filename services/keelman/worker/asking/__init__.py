"""What the group's leader asks connectors' classes: which tasks they want, and whether that still holds."""
