"""Schema registries, as converters know them: schemas, ids, subjects, keys."""
