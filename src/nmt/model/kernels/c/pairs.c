// Products of rows with a matrix in bf16, summed in float32: half of the memory of float32 is read, and processors with AMX
// multiply tiles of 16 rows by 16 columns.

#include "products.h"
#include "threads.h"

#if defined(__AVX512F__) && (defined(__AVX512BF16__) || defined(__AMX_BF16__))
#include <immintrin.h>
#endif
#if defined(__AVX512F__) && defined(__AMX_BF16__) && defined(__linux__)
#define HAS_TILES
#include <sys/syscall.h>
#include <unistd.h>
#endif

// Fewer multiplications than this are not worth a second thread; tests define a smaller one.
#ifndef FEW
#define FEW (1 << 16)
#endif

enum { PANEL = PANEL_COLUMNS, TILE = LANES == 16 ? 12 : 6 };

typedef struct {
    matrix by;
    const float *rows;
    int64_t count, panels, width;  // pairs of inputs
    float *result;
    uint32_t *pairs;  // of the rows, rounded
    int32_t then;
} product;

// Round rows, and fill them up with zeros.
static void round_rows(void *task, int64_t first, int64_t last, int64_t thread) {
    const product *it = task;
    int64_t inputs = it->by.inputs, whole = inputs / LANES * LANES;
    (void)thread;
    for (int64_t row = first; row < last; row++) {
        const float *from = it->rows + row * inputs;
        uint16_t *to = (uint16_t *)(it->pairs + row * it->width);
        for (int64_t place = 0; place < 2 * it->width; place += LANES) {
            float end[LANES] = {0};
            if (place >= whole && place < inputs) memcpy(end, from + place, (inputs - place) * sizeof *end);
            halves half = rounded(load_floats(place < whole ? from + place : end));
            memcpy(to + place, &half, sizeof half);
        }
    }
}

// Add the products of a pair of numbers of a row with those of LANES columns.
static inline floats add_products(floats to, uint32_t pair, const uint32_t *weights) {
    words columns;
    memcpy(&columns, weights, sizeof columns);
#if defined(__AVX512F__) && defined(__AVX512BF16__)
    return (floats)_mm512_dpbf16_ps((__m512)to, (__m512bh)_mm512_set1_epi32((int)pair), (__m512bh)columns);
#else
    words both = (words){0} + pair;
    to += (floats)(both << 16) * (floats)(columns << 16);
    return to + (floats)(both & 0xffff0000) * (floats)(columns & 0xffff0000);
#endif
}

// Multiply `count` rows by a panel. The count is a constant in each call, so that all sums are in registers.
static inline __attribute__((always_inline)) void multiply_tile(const product *it, int64_t row, int64_t panel,
                                                                const int count) {
    int64_t width = it->width, outputs = it->by.outputs, column = panel * PANEL;
    const uint32_t *rows = it->pairs + row * width, *weights = it->by.pairs + column * width;
    floats left[TILE], right[TILE];
#pragma GCC unroll 12
    for (int each = 0; each < count; each++) {
        left[each] = load_floats(it->by.bias + column);
        right[each] = load_floats(it->by.bias + column + LANES);
    }
    for (int64_t pair = 0; pair < width; pair++, weights += PANEL) {
#pragma GCC unroll 12
        for (int each = 0; each < count; each++) {
            left[each] = add_products(left[each], rows[each * width + pair], weights);
            right[each] = add_products(right[each], rows[each * width + pair], weights + LANES);
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

#ifdef HAS_TILES
enum { TILE_ROWS = 16, TILE_BYTES = 64, MAX_ROWS = 2 * TILE_ROWS };

typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} tile_shapes;

// Ask Linux for the memory of the tiles, which a process does not have from the beginning.
static int tiles_are_allowed(void) {
    enum { REQUEST = 0x1023, TILE_DATA = 18 };
    static int allowed = -1;
    if (allowed < 0) allowed = syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
    return allowed;
}

// Sum the products of up to two tiles of rows with a panel in tiles 0 to 3, and store them.
static void multiply_tiles(const void *task, int64_t row, int64_t panel, int64_t count) {
    const product *it = task;
    int64_t width = it->width, outputs = it->by.outputs, column = panel * PANEL, stride = width * sizeof *it->pairs;
    const uint32_t *rows = it->pairs + row * width, *weights = it->by.pairs + column * width;
    float sums[MAX_ROWS][PANEL];
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t pair = 0; pair < width; pair += PAIRS) {
        _tile_loadd(4, rows + pair, stride);
        _tile_loadd(6, weights + pair * PANEL, PANEL * sizeof *weights);
        _tile_loadd(7, weights + pair * PANEL + LANES, PANEL * sizeof *weights);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        if (count > TILE_ROWS) {
            _tile_loadd(5, rows + TILE_ROWS * width + pair, stride);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, sums[0], sizeof *sums);
    _tile_stored(1, sums[0] + LANES, sizeof *sums);
    if (count > TILE_ROWS) {
        _tile_stored(2, sums[TILE_ROWS], sizeof *sums);
        _tile_stored(3, sums[TILE_ROWS] + LANES, sizeof *sums);
    }
    floats left = load_floats(it->by.bias + column), right = load_floats(it->by.bias + column + LANES);
    float *to = it->result + row * outputs + column;
    for (int64_t each = 0; each < count; each++, to += outputs)
        store_panel(to, load_floats(sums[each]) + left, load_floats(sums[each] + LANES) + right, it->then, outputs - column);
}

static void multiply_part_in_tiles(void *task, int64_t first, int64_t last, int64_t thread) {
    const product *it = task;
    tile_shapes shapes = {.palette = 1}, before;
    (void)thread;
    for (int tile = 0; tile < 8; tile++) {
        shapes.bytes[tile] = TILE_BYTES;
        shapes.rows[tile] = TILE_ROWS;
    }
    _tile_storeconfig(&before);  // oneDNN's
    _tile_loadconfig(&shapes);
    multiply_items(multiply_tiles, it, it->count, it->panels, MAX_ROWS, first, last);
    _tile_loadconfig(&before);
}
#else
static int tiles_are_allowed(void) { return 0; }
#define multiply_part_in_tiles multiply_part
#endif

void multiply_pairs(const matrix *by, const float *rows, int64_t count, float *result, int32_t then, void *scratch) {
    int64_t panels = (by->outputs + PANEL - 1) / PANEL, chunks = chunks_of(count);
    int64_t width = (by->inputs + 2 * PAIRS - 1) / (2 * PAIRS) * PAIRS;
    product task = {*by, rows, count, panels, width, result, scratch, then};
    divide(round_rows, &task, count, 1 + FEW / (1 + by->inputs));
    int64_t few = 1 + FEW * panels * chunks / (1 + count * by->inputs * by->outputs);
    divide(tiles_are_allowed() ? multiply_part_in_tiles : multiply_part, &task, panels * chunks, few);
}
