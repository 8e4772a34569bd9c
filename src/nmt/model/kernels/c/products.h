// Products of rows with a matrix whose columns are stored in panels. They are the same for any number of threads.

#pragma once

#include <stdint.h>

#include "vectors.h"

// A matrix of `outputs` rows and `inputs` columns, in float32, bf16 or int8. The last panel, the bias and what int8 adds to
// it are filled up with zeros.
//
// In float32, a panel holds `panel_columns` of the matrix's rows, transposed, so that the numbers that are multiplied by
// the same input are adjacent. In bf16, it holds for each pair of inputs, of which there is a multiple of PAIRS, the two
// numbers of each of its `panel_columns` columns. In int8, a panel has groups of BYTE_INPUTS inputs: for each of its
// `panel_columns` columns the integers that are multiplied by the group. Each is at most 127, and is multiplied by the scale
// of its column.
typedef struct {
    const float *panels, *bias;
    const uint32_t *pairs;  // instead of panels, or 0
    const int8_t *bytes;    // the same
    const float *scales;
    const int32_t *totals;  // the sums of the integers of each column
    int64_t inputs, outputs;
} matrix;

enum { PANEL_COLUMNS = 2 * LANES, PAIRS = 16, BYTE_INPUTS = 4 };
enum { STORE, RECTIFY, ADD };  // what happens to a product: stored, stored after a ReLU, or added to the result

extern const int64_t panel_columns;

static inline void store_sums(float *to, floats sums, int32_t then) {
    if (then == RECTIFY) sums = (floats)((ints)sums & ~(sums <= 0));
    store_floats(to, then == ADD ? sums + load_floats(to) : sums);
}

// Store the sums of a panel's columns, or of the last ones of a matrix, which are fewer.
static inline void store_panel(float *to, floats left, floats right, int32_t then, int64_t columns) {
    if (columns >= PANEL_COLUMNS) {
        store_sums(to, left, then);
        store_sums(to + LANES, right, then);
    } else {
        float numbers[PANEL_COLUMNS];
        memcpy(numbers, to, columns * sizeof *to);
        store_sums(numbers, left, then);
        store_sums(numbers + LANES, right, then);
        memcpy(to, numbers, columns * sizeof *to);
    }
}

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

// result = rows W^T + bias, or the ReLU of it, or added to the result, for rows (count, inputs) without gaps. Unless the
// matrix is in float32, `scratch` has room for the rows, and for 32 more, which AMX may read: for inputs + 4
// bytes each in int8, and for the pairs in bf16.
void multiply(const matrix *by, const float *rows, int64_t count, float *result, int32_t then, void *scratch);
void multiply_pairs(const matrix *by, const float *rows, int64_t count, float *result, int32_t then, void *scratch);
void multiply_bytes(const matrix *by, const float *rows, int64_t count, float *result, int32_t then, void *scratch);
