"""First contact with a device: is what it computes correct, how fast is it, and which settings suit it?"""
