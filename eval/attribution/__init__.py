"""How well the verifier tells supported from unsupported claims."""
