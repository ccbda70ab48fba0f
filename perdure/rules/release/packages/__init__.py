"""Several packages of one repository, released in one plan."""
