"""Files as sources and sinks: FileStreamSource and FileStreamSink."""
