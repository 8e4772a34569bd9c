// Products of rows with a matrix whose columns are stored in panels. They are the same for any number of threads.

#pragma once

#include <stdint.h>

// A matrix of `outputs` rows and `inputs` columns, in float32 or in int8. The last panel, the bias and what int8 adds to it
// are filled up with zeros.
//
// In float32, a panel holds `panel_columns` of the matrix's rows, transposed, so that the numbers that are multiplied by
// the same input are adjacent. In int8, a panel has groups of BYTE_INPUTS inputs: for each of its `byte_columns` columns
// the integers that are multiplied by the group. Each is at most 127, and is multiplied by the scale of its column.
typedef struct {
    const float *panels, *bias;
    const int8_t *bytes;  // instead of panels, or 0
    const float *scales;
    const int32_t *totals;  // the sums of the integers of each column
    int64_t inputs, outputs;
} matrix;

enum { BYTE_INPUTS = 4 };
enum { STORE, RECTIFY, ADD };  // what happens to a product: stored, stored after a ReLU, or added to the result

extern const int64_t panel_columns, byte_columns;

// result = rows W^T + bias, or the ReLU of it, or added to the result, for rows (count, inputs) without gaps. If the
// matrix is in int8, `scratch` has room for the rows: inputs + 4 bytes each.
void multiply(const matrix *by, const float *rows, int64_t count, float *result, int32_t then, void *scratch);
void multiply_bytes(const matrix *by, const float *rows, int64_t count, float *result, int32_t then, void *scratch);
