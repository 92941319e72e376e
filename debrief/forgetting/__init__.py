"""Forgetting: sessions are taken away from every place that Debrief keeps them in."""
