"""Files of any size translated into corpora, for back-translation and distillation."""
