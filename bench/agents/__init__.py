"""One work load for agents, three who do it: a bare loop, a loop written by hand on Temporal, and Perdure."""
