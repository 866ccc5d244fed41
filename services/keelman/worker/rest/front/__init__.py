"""What a request meets before its handler: listeners, users, origins; its path, method and type are judged."""
