"""What every layer uses: configuration, dtypes and their promotion, errors, pytrees."""
