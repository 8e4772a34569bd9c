// Products of rows with a matrix whose columns are stored in panels. They are the same for any number of threads.

#pragma once

#include <stdint.h>

// A matrix of `outputs` rows and `inputs` columns. A panel holds `panel_columns` of its rows, transposed, so that the
// numbers that are multiplied by the same input are adjacent; the last panel and the bias are filled up with zeros.
typedef struct {
    const float *panels, *bias;
    int64_t inputs, outputs;
} matrix;

enum { STORE, RECTIFY, ADD };  // what happens to a product: stored, stored after a ReLU, or added to the result

extern const int64_t panel_columns;

void multiply(const matrix *by, const float *rows, int64_t count, float *result, int32_t then);
