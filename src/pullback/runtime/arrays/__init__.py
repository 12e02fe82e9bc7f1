"""Arrays and the devices they lie on."""
