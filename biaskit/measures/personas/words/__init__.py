"""Which words mark each gender: log-odds, lists and their nulls, calibration."""
