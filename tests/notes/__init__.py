"""What attempts tell while they run."""
