"""Problems with places, YAML with places, reading files within limits, writing files whole."""
