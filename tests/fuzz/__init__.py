"""A stranger's fuzz: folders, studies and settings as nobody should have them."""
