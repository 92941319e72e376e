"""The offline evaluator: verdicts, scores and judgements by rules, without a model."""
