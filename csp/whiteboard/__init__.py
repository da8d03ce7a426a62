"""The notes of a room and the search for them.

`whiteboard` answers all requests. `note_index` finds notes by words and names in an SQLite file that can
always be rebuilt from the journal; `semantic_search` finds them by meaning if the extra `search` is
installed. `openai_store` keeps the notes of a session in a vector store of OpenAI instead.
"""
