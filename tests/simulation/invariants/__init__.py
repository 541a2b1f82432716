"""What must be true of every run. Each invariant is a pure function from a history to what breaks it."""
