"""Other people's formats, a file a format: hf (tokenizer.json), sentencepiece (tokenizer.model), the model card, the folder."""
