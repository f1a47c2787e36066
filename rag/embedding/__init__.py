"""One file per kind of embedding model; `rag.embed` chooses among them."""
