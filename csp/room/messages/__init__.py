"""Messages: who gets them, how far each delivery has come, what waits."""
