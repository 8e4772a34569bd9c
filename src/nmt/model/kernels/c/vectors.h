// Vectors of LANES numbers: read as bf16, computed in float32, and rounded to bf16 when they are stored.
//
// No option of the compiler may assume finite numbers: NaN in must be NaN out, because the trainer skips steps that are
// not finite.

#pragma once

#include <stdint.h>
#include <string.h>

enum { LANES = 16 };
typedef float floats __attribute__((vector_size(4 * LANES)));
typedef int32_t ints __attribute__((vector_size(4 * LANES)));
typedef uint32_t words __attribute__((vector_size(4 * LANES)));
typedef uint16_t halves __attribute__((vector_size(2 * LANES)));
typedef int16_t shorts __attribute__((vector_size(2 * LANES)));

// The numbers at these places of a, or of b from LANES on.
#if __has_builtin(__builtin_shufflevector)
#define chosen(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define chosen(a, b, ...) __builtin_shuffle(a, b, (ints){__VA_ARGS__})
#endif

static inline floats load(const uint16_t *from) {
    halves half;
    memcpy(&half, from, sizeof half);
    return (floats)(__builtin_convertvector(half, words) << 16);
}

static inline void store(uint16_t *to, floats values) {
    words bits = (words)values;
    halves half = __builtin_convertvector((bits + 0x7fff + ((bits >> 16) & 1)) >> 16, halves);  // nearest, ties to even
    memcpy(to, &half, sizeof half);
}

static inline floats load_floats(const float *from) {
    floats values;
    memcpy(&values, from, sizeof values);
    return values;
}

static inline void store_floats(float *to, floats values) { memcpy(to, &values, sizeof values); }

// The larger of both; b if any of them is NaN.
static inline floats larger(floats a, floats b) {
    ints first = a > b;
    return (floats)((first & (ints)a) | (~first & (ints)b));
}

// Combine all numbers of a vector: those that are 8 places apart first, then 4, 2 and 1.
#define FOLD(combine, values)                                                                             \
    values = combine(values, chosen(values, values, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)); \
    values = combine(values, chosen(values, values, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11)); \
    values = combine(values, chosen(values, values, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)); \
    values = combine(values, chosen(values, values, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14));

static inline float largest_of(floats values) {
    FOLD(larger, values)
    return values[0];
}

static inline floats sum(floats a, floats b) { return a + b; }

static inline float sum_of(floats values) {
    FOLD(sum, values)
    return values[0];
}

// All bits where the place in a row of blocks is below the limit, else none.
static inline ints below(int64_t limit, int64_t block) {
    const ints places = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return places + (int32_t)(block * LANES) < (ints){0} + (int32_t)limit;
}

// e^x for x <= 0, with a relative error of 1e-7; 0 where that is no normal number.
static inline floats exponential(floats x) {
    floats t = larger((floats){0} - 127.0f, x * 1.44269504f);
    floats whole = (t + 12582912.0f) - 12582912.0f;  // rounds to the nearest integer
    floats f = t - whole;
    floats p = 1.5353362e-4f * f + 1.3398874e-3f;  // 2^f for -0.5 <= f <= 0.5
    p = p * f + 9.6184373e-3f;
    p = p * f + 5.5503324e-2f;
    p = p * f + 2.4022648e-1f;
    p = p * f + 6.9314720e-1f;
    p = p * f + 1.0f;
    return p * (floats)((__builtin_convertvector(whole, ints) + 127) << 23);
}
