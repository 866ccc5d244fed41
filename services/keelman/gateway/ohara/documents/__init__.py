"""Stores and returns objects that do not run: objects, volumes, pipelines, streams, shabondis, zookeepers."""
