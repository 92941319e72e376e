"""Stands in for torchaudio, which LLaMA-Factory imports and reads no text with."""
