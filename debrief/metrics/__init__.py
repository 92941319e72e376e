"""What a lake and a recorder's database hold, as figures that a monitoring system reads."""
