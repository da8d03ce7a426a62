"""A scripted model server on loopback that speaks the languages of the three real CLIs."""
