"""The connectors we ship, one file each, and the registry that finds them."""
