"""Stores and answers what does not run: objects, volumes, pipelines, streams, shabondis, zookeepers."""
