"""Models as published: the config.json of a checkpoint, read into catalog fields."""
