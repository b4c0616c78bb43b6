"""The arithmetic of decoding as data: questions, shared columns, features, kinds of values."""
