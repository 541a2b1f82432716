"""Ways to run a claim: each takes one attempt and returns an Outcome."""
