"""Networks that policies decide by: inference in compiled code, without torch."""
