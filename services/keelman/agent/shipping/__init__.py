"""Log delivery: the logs of a node's workers, brought to files, objects and topics, each line once."""
