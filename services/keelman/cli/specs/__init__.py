"""The options of `create` and `update`, and how they change specs."""
