// Products of rows with a matrix in int8: a quarter of the memory of float32 is read, which is what few rows wait for.
//
// Each row and each column has a scale of its own. Sums of products of integers are exact, so results are the same on
// every processor, with and without VNNI.

#include "products.h"

#include "pool.h"
#include "vectors.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

// VNNI multiplies numbers without a sign by those of the matrix, so it adds SHIFT to the numbers of rows.
#if (defined(__AVX512VNNI__) || (defined(__AVXVNNI__) && !defined(__AVX512F__))) && !defined(WITHOUT_VNNI)
enum { SHIFT = 128 };
#else
enum { SHIFT = 0 };
#endif
enum { GROUP = BYTE_INPUTS, PANEL = PANEL_COLUMNS, TILE = LANES == 16 ? 12 : 5, SPEED = 4 };

typedef struct {
    matrix by;
    const float *rows;
    int64_t count, panels;
    float *result, *scales;  // of the rows
    int8_t *digits;
    int32_t then;
} product;

// Add the products of GROUP numbers of a row with those of LANES columns.
static inline ints add_products(ints to, const int8_t *row, const int8_t *weights) {
    int32_t group;
    memcpy(&group, row, sizeof group);
#if defined(__AVX512VNNI__) && !defined(WITHOUT_VNNI)
    return (ints)_mm512_dpbusd_epi32((__m512i)to, _mm512_set1_epi32(group), _mm512_loadu_si512(weights));
#elif defined(__AVXVNNI__) && !defined(__AVX512F__) && !defined(WITHOUT_VNNI)
    __m256i columns = _mm256_loadu_si256((const void *)weights);
    return (ints)_mm256_dpbusd_avx_epi32((__m256i)to, _mm256_set1_epi32(group), columns);
#elif defined(__AVX512BW__)
    // |w| * (x with the sign of w): two such products are at most 2 * 127 * 127, which 16 bits hold
    __m512i columns = _mm512_loadu_si512(weights), same = _mm512_set1_epi32(group);
    __m512i signed_row = _mm512_mask_sub_epi8(same, _mm512_movepi8_mask(columns), _mm512_setzero_si512(), same);
    __m512i pairs = _mm512_maddubs_epi16(_mm512_abs_epi8(columns), signed_row);
    return to + (ints)_mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
#elif defined(__AVX2__) && !defined(__AVX512F__)
    __m256i columns = _mm256_loadu_si256((const void *)weights);
    __m256i signed_row = _mm256_sign_epi8(_mm256_set1_epi32(group), columns);
    __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(columns), signed_row);
    return to + (ints)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#else
    for (int column = 0; column < LANES; column++)
        for (int place = 0; place < GROUP; place++) to[column] += row[place] * weights[column * GROUP + place];
    return to;
#endif
}

// Round rows to integers of at most 127. A row with NaN gets NaN as its scale.
static void round_rows(void *task, int64_t first, int64_t last, int64_t thread) {
    const product *it = task;
    int64_t inputs = it->by.inputs;
    (void)thread;
    for (int64_t row = first; row < last; row++) {
        const float *from = it->rows + row * inputs;
        int8_t *to = it->digits + row * inputs;
        int32_t highest = 0;  // the bits of positive numbers are ordered like them, and those of NaN are above
        for (int64_t input = 0; input < inputs; input++) {
            int32_t bits = ((const int32_t *)from)[input] & 0x7fffffff;
            highest = bits > highest ? bits : highest;
        }
        float largest;
        memcpy(&largest, &highest, sizeof largest);
        float factor = largest > 0 ? 127 / largest : 0;
        it->scales[row] = largest / 127;
        // adding and subtracting 1.5 * 2^23 rounds to the nearest integer, ties to even
        for (int64_t input = 0; input < inputs; input++)
            to[input] = (int8_t)((int32_t)((from[input] * factor + 12582912.0f) - 12582912.0f) + SHIFT);
    }
}

// Multiply `count` rows by a panel. The count is a constant in each call, so that all sums are in registers.
static inline __attribute__((always_inline)) void multiply_tile(const product *it, int64_t row, int64_t panel,
                                                                const int count) {
    int64_t inputs = it->by.inputs, outputs = it->by.outputs, column = panel * PANEL;
    const int8_t *digits = it->digits + row * inputs;
    const int8_t *weights = it->by.bytes + column * inputs;
    const int32_t *totals = it->by.totals + column;
    ints left[TILE], right[TILE];
#pragma GCC unroll 12
    for (int each = 0; each < count; each++) {
        memcpy(&left[each], totals, sizeof *left);
        memcpy(&right[each], totals + LANES, sizeof *right);
        left[each] *= -SHIFT;
        right[each] *= -SHIFT;
    }
    for (int64_t input = 0; input < inputs; input += GROUP, weights += PANEL * GROUP) {
#pragma GCC unroll 12
        for (int each = 0; each < count; each++) {
            left[each] = add_products(left[each], digits + each * inputs + input, weights);
            right[each] = add_products(right[each], digits + each * inputs + input, weights + LANES * GROUP);
        }
    }
    const float *scales = it->by.scales + column, *bias = it->by.bias + column;
    float *to = it->result + row * outputs + column;
#pragma GCC unroll 12
    for (int each = 0; each < count; each++, to += outputs) {
        float scale = it->scales[row + each];
        floats one = __builtin_convertvector(left[each], floats) * (load_floats(scales) * scale);
        floats two = __builtin_convertvector(right[each], floats) * (load_floats(scales + LANES) * scale);
        store_panel(to, one + load_floats(bias), two + load_floats(bias + LANES), it->then, outputs - column);
    }
}

#define ROWS(n) \
    case n: multiply_tile(it, row, panel, n); break;

static void multiply_few(const void *task, int64_t row, int64_t panel, int64_t count) {
    const product *it = task;
    switch (count) {
        ROWS(1) ROWS(2) ROWS(3) ROWS(4) ROWS(5)
#if defined(__AVX512F__)
        ROWS(6) ROWS(7) ROWS(8) ROWS(9) ROWS(10) ROWS(11) ROWS(12)
#endif
    }
}

static void multiply_part(void *task, int64_t first, int64_t last, int64_t thread) {
    const product *it = task;
    (void)thread;
    multiply_items(multiply_few, it, it->count, it->panels, TILE, first, last);
}

void multiply_bytes(const matrix *by, const float *rows, int64_t count, float *result, int32_t then, void *scratch) {
    int64_t panels = (by->outputs + PANEL - 1) / PANEL, chunks = chunks_of(count);
    float *scales = scratch;
    product task = {*by, rows, count, panels, result, scales, (int8_t *)(scales + count), then};
    share(round_rows, &task, count, count * by->inputs);
    share(multiply_part, &task, panels * chunks, count * by->inputs * by->outputs / SPEED);
}
