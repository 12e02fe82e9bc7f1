"""What devices do together."""
