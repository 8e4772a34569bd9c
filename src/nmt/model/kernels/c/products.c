// Products of rows with a matrix in float32.

#include "products.h"

enum { SPEED = 1 };
typedef float word;

static inline floats add_products(floats to, float number, const float *weights) {
    return to + number * load_floats(weights);
}

#include "tiles.h"

const int64_t panel_columns = PANEL;

void multiply(const matrix *by, const float *rows, int64_t count, float *result, int32_t then, void *scratch) {
    if (by->bytes) {
        multiply_bytes(by, rows, count, result, then, scratch);
    } else if (by->pairs) {
        multiply_pairs(by, rows, count, result, then, scratch);
    } else {
        product task = {by, rows, by->panels, count, by->inputs, result, then};
        share_product(multiply_part, &task);
    }
}
