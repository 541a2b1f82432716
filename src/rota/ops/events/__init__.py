"""Events, and the steps of runs that wait for them."""
