"""What processes and machines share of their runs: answers, what was spent, who works on what."""
