"""A room's notes and the search for them.

`whiteboard` serves all requests. `note_index` finds notes by words and names in an SQLite file that can
always be rebuilt from the journal; `semantic_search` finds them by meaning if the extra `search` is
installed. `openai_vector_store` keeps a session's notes in an OpenAI vector store instead.
"""
