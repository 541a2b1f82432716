"""Other task queues, run as their users run them, to compare with."""
