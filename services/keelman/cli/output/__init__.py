"""What commands print: tables, documents, names."""
