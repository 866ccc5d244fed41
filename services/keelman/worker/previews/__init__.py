"""What is done beside copying: previews and replays, in processes of their own."""
