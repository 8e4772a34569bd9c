// Products of rows with a matrix in panels, in float32: each panel is read once for a tile of rows, whose sums stay in
// registers.

#include "products.h"

#include "threads.h"
#include "vectors.h"

// Fewer multiplications than this are not worth a second thread; tests define a smaller one.
#ifndef FEW
#define FEW (1 << 15)
#endif

enum {
    PANEL = PANEL_COLUMNS,
    TILE = LANES == 16 ? 12 : 6,  // rows whose sums, and the panel's numbers, fit into the registers
};

const int64_t panel_columns = PANEL;

typedef struct {
    matrix by;
    const float *rows;
    int64_t count, panels;
    float *result;
    int32_t then;
} product;

// Multiply `count` rows by a panel. The count is a constant in each call, so that all sums are in registers.
static inline __attribute__((always_inline)) void multiply_tile(const product *it, int64_t row, int64_t panel,
                                                                const int count) {
    int64_t inputs = it->by.inputs, outputs = it->by.outputs, column = panel * PANEL;
    const float *rows = it->rows + row * inputs, *weights = it->by.panels + column * inputs;
    floats left[TILE], right[TILE];
#pragma GCC unroll 12
    for (int each = 0; each < count; each++) {
        left[each] = load_floats(it->by.bias + column);
        right[each] = load_floats(it->by.bias + column + LANES);
    }
    for (int64_t input = 0; input < inputs; input++, weights += PANEL) {
        floats first = load_floats(weights), second = load_floats(weights + LANES);
#pragma GCC unroll 12
        for (int each = 0; each < count; each++) {
            left[each] += rows[each * inputs + input] * first;
            right[each] += rows[each * inputs + input] * second;
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

static void multiply_part(void *task, int64_t first, int64_t last, int64_t thread) {
    const product *it = task;
    (void)thread;
    multiply_items(multiply_rows, it, it->count, it->panels, TILE, first, last);
}

void multiply(const matrix *by, const float *rows, int64_t count, float *result, int32_t then, void *scratch) {
    if (by->bytes) {
        multiply_bytes(by, rows, count, result, then, scratch);
        return;
    }
    if (by->pairs) {
        multiply_pairs(by, rows, count, result, then, scratch);
        return;
    }
    int64_t panels = (by->outputs + PANEL - 1) / PANEL, chunks = chunks_of(count);
    product task = {*by, rows, count, panels, result, then};
    int64_t few = 1 + FEW * panels * chunks / (1 + count * by->inputs * by->outputs);
    divide(multiply_part, &task, panels * chunks, few);
}
