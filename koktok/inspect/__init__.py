"""What is wrong with a vocabulary (doctor), and where two tokenizers cut differently (diff)."""
