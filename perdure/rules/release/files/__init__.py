"""Files that say a version, one module a format, listed in ``registry``."""
