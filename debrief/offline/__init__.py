"""The offline evaluator: a deterministic baseline that reads signals out of a session."""
