"""The rows of the paper's Table 3, trained, scored and compared with the paper."""
