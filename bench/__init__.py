"""How fast ADLRO is, always beside something else doing the same work on the same machine."""
