"""What stands between a Java task and bytes: transforms, predicates and converters, tried as the error policy says."""
