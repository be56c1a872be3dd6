"""What biaskit measures: a folder for each kind of measurement; none of them imports another."""
