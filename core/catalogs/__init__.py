"""What tables name: models, GPUs, hardware constants, profiles, draft trees."""
