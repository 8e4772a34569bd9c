"""What several of these tools need."""
