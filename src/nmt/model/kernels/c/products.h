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

enum { CHUNK = 96 };  // rows that stay in the cache while all panels pass by

static inline int64_t chunks_of(int64_t rows) { return (rows + CHUNK - 1) / CHUNK; }

// Multiply at most `tile` rows, from one on, by a panel.
typedef void multiply_tile_of(const void *task, int64_t row, int64_t panel, int64_t rows);

// Do some of the pairs of a chunk of `count` rows and a panel, in tiles of similar size.
static inline void multiply_items(multiply_tile_of *multiply_rows, const void *task, int64_t count, int64_t panels,
                                  int64_t tile, int64_t first, int64_t last) {
    for (int64_t item = first; item < last; item++) {
        int64_t start = item / panels * CHUNK, rows = count - start;
        if (rows > CHUNK) rows = CHUNK;
        int64_t tiles = (rows + tile - 1) / tile;
        for (int64_t part = 0; part < tiles; part++) {
            int64_t from = rows * part / tiles, to = rows * (part + 1) / tiles;
            multiply_rows(task, start + from, item % panels, to - from);
        }
    }
}

// result = rows W^T + bias, or the ReLU of it, or added to the result, for rows (count, inputs) without gaps. If the
// matrix is in int8, `scratch` has room for the rows: inputs + 4 bytes each.
void multiply(const matrix *by, const float *rows, int64_t count, float *result, int32_t then, void *scratch);
void multiply_bytes(const matrix *by, const float *rows, int64_t count, float *result, int32_t then, void *scratch);
