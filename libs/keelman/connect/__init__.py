"""The connector SDK and Connect's data semantics: records, schemas, converters, offsets, ConfigDef."""
