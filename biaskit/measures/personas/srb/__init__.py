"""How women and men are described: the SRB score of marked words, and their clusters."""
