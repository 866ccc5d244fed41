"""What this API stores and answers, and what does not run: objects, volumes, pipelines, streams, shabondis."""
