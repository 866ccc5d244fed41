"""MirrorSource: topics of another Kafka cluster, mirrored as MirrorMaker 2 does it."""
