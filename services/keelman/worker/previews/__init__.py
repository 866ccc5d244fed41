"""Previews and replays, in processes of their own beside the copying."""
