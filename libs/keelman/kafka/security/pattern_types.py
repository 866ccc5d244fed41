"""The words for the names that an access rule means: one name, or all that begin so (`PatternType.java`)."""

LITERAL, PREFIXED = "LITERAL", "PREFIXED"
