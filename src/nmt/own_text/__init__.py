"""Settings derived from the size of the text, the minutes there are for training, and the speed of this machine."""
