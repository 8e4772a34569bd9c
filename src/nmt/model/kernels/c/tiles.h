// Products of rows with the panels of a matrix, both in words: numbers in float32, or pairs of them in bf16. Each panel is
// read once for a tile of rows, whose sums stay in registers.
//
// The file that includes this defines `word`; `add_products`, which adds the products of a word of a row with the words of
// LANES columns; and SPEED, the products that take the time of one in float32.

#pragma once

#include "products.h"
#include "pool.h"

enum {
    PANEL = PANEL_COLUMNS,
    TILE = LANES == 16 ? 12 : 6,  // rows whose sums, and the panel's numbers, fit into the registers
};

typedef struct {
    const matrix *by;
    const word *rows, *panels;
    int64_t count, width;  // rows, and words of each
    float *result;
    int32_t then;
} product;

// Multiply `count` rows by a panel. The count is a constant in each call, so that all sums are in registers.
static inline __attribute__((always_inline)) void multiply_tile(const product *it, int64_t row, int64_t panel,
                                                                const int count) {
    int64_t width = it->width, outputs = it->by->outputs, column = panel * PANEL;
    const word *rows = it->rows + row * width, *weights = it->panels + column * width;
    floats left[TILE], right[TILE];
#pragma GCC unroll 12
    for (int each = 0; each < count; each++) {
        left[each] = load_floats(it->by->bias + column);
        right[each] = load_floats(it->by->bias + column + LANES);
    }
    for (int64_t place = 0; place < width; place++, weights += PANEL) {
#pragma GCC unroll 12
        for (int each = 0; each < count; each++) {
            left[each] = add_products(left[each], rows[each * width + place], weights);
            right[each] = add_products(right[each], rows[each * width + place], weights + LANES);
        }
    }
    float *to = it->result + row * outputs + column;
#pragma GCC unroll 12
    for (int each = 0; each < count; each++, to += outputs)
        store_panel(to, left[each], right[each], it->then, outputs - column);
}

#define ROWS(n) \
    case n: multiply_tile(it, row, panel, n); break;

static void multiply_rows(const void *task, int64_t row, int64_t panel, int64_t count) {
    const product *it = task;
    switch (count) {
        ROWS(1) ROWS(2) ROWS(3) ROWS(4) ROWS(5) ROWS(6)
#if defined(__AVX512F__)
        ROWS(7) ROWS(8) ROWS(9) ROWS(10) ROWS(11) ROWS(12)
#endif
    }
}

static inline int64_t panels_of(const product *it) { return (it->by->outputs + PANEL - 1) / PANEL; }

static void multiply_part(void *task, int64_t first, int64_t last, int64_t thread) {
    const product *it = task;
    (void)thread;
    multiply_items(multiply_rows, it, it->count, panels_of(it), TILE, first, last);
}

// Share a product between the threads.
static inline void share_product(work *part, product *it) {
    share(part, it, panels_of(it) * chunks_of(it->count), it->count * it->by->inputs * it->by->outputs / SPEED);
}
