"""What can be typed: names, options and help, one light module a group of commands."""
