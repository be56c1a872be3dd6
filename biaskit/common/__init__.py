"""What every room may use: reading and writing files, foreign text, words for numbers, digests."""
