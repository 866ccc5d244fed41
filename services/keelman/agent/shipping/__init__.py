"""Log delivery: what a node's workers log, brought to files, objects and topics, each line once."""
