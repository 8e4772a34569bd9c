// Products of rows with a matrix in bf16, summed in float32: half of the memory of float32 is read, and AMX multiplies 16
// rows by 16 columns at a time.

#include "products.h"

#if defined(__AVX512F__) && (defined(__AVX512BF16__) || defined(__AMX_BF16__))
#include <immintrin.h>
#endif
#if defined(__AVX512F__) && defined(__AMX_BF16__) && defined(__linux__)
#define HAS_AMX
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { SPEED = 2 };
typedef uint32_t word;

// Add the products of a pair of numbers of a row with those of LANES columns.
static inline floats add_products(floats to, word pair, const word *weights) {
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

#include "tiles.h"

typedef struct {
    const float *rows;
    int64_t inputs, width;  // numbers of a row, and pairs
    word *pairs;
} rounding;

// Round rows, and fill them up with zeros.
static void round_rows(void *task, int64_t first, int64_t last, int64_t thread) {
    const rounding *it = task;
    int64_t inputs = it->inputs, whole = inputs / LANES * LANES;
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

#ifdef HAS_AMX
enum { AMX_ROWS = 16, AMX_BYTES = 64, MAX_ROWS = 2 * AMX_ROWS };

typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} amx_shapes;

// Ask Linux for the memory of AMX, which a process does not have from the beginning.
static int amx_is_allowed(void) {
    enum { REQUEST = 0x1023, TILE_DATA = 18 };
    static int allowed = -1;
    if (allowed < 0) allowed = syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
    return allowed;
}

// Sum the products of up to two times 16 rows with a panel in the registers 0 to 3 of AMX, and store them.
static void multiply_with_amx(const void *task, int64_t row, int64_t panel, int64_t count) {
    const product *it = task;
    int64_t width = it->width, outputs = it->by->outputs, column = panel * PANEL, stride = width * sizeof *it->rows;
    const word *rows = it->rows + row * width, *weights = it->panels + column * width;
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
        if (count > AMX_ROWS) {
            _tile_loadd(5, rows + AMX_ROWS * width + pair, stride);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, sums[0], sizeof *sums);
    _tile_stored(1, sums[0] + LANES, sizeof *sums);
    if (count > AMX_ROWS) {
        _tile_stored(2, sums[AMX_ROWS], sizeof *sums);
        _tile_stored(3, sums[AMX_ROWS] + LANES, sizeof *sums);
    }
    floats left = load_floats(it->by->bias + column), right = load_floats(it->by->bias + column + LANES);
    float *to = it->result + row * outputs + column;
    for (int64_t each = 0; each < count; each++, to += outputs)
        store_panel(to, load_floats(sums[each]) + left, load_floats(sums[each] + LANES) + right, it->then, outputs - column);
}

static void multiply_part_with_amx(void *task, int64_t first, int64_t last, int64_t thread) {
    const product *it = task;
    amx_shapes shapes = {.palette = 1}, before;
    (void)thread;
    for (int place = 0; place < 8; place++) {
        shapes.bytes[place] = AMX_BYTES;
        shapes.rows[place] = AMX_ROWS;
    }
    _tile_storeconfig(&before);  // oneDNN's
    _tile_loadconfig(&shapes);
    multiply_items(multiply_with_amx, it, it->count, panels_of(it), MAX_ROWS, first, last);
    _tile_loadconfig(&before);
}
#else
static int amx_is_allowed(void) { return 0; }
#define multiply_part_with_amx multiply_part
#endif

void multiply_pairs(const matrix *by, const float *rows, int64_t count, float *result, int32_t then, void *scratch) {
    int64_t width = (by->inputs + 2 * PAIRS - 1) / (2 * PAIRS) * PAIRS;
    rounding rounded_rows = {rows, by->inputs, width, scratch};
    share(round_rows, &rounded_rows, count, count * by->inputs);
    product task = {by, scratch, by->pairs, count, width, result, then};
    share_product(amx_is_allowed() ? multiply_part_with_amx : multiply_part, &task);
}
