// Vectors of LANES numbers, as wide as the processor's registers: read in the type of the stream, computed in float32,
// and rounded when they are stored. FLOAT32 chooses float32 as the type of the stream; otherwise it is bf16.
//
// No option of the compiler may assume finite numbers: NaN in must be NaN out, because the trainer skips steps that are
// not finite.

#pragma once

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
enum { LANES = 16 };
#define EACH_LANE(F, d) F(0, d), F(1, d), F(2, d), F(3, d), F(4, d), F(5, d), F(6, d), F(7, d), \
                        F(8, d), F(9, d), F(10, d), F(11, d), F(12, d), F(13, d), F(14, d), F(15, d)
#elif defined(__AVX__)
enum { LANES = 8 };
#define EACH_LANE(F, d) F(0, d), F(1, d), F(2, d), F(3, d), F(4, d), F(5, d), F(6, d), F(7, d)
#else
enum { LANES = 4 };
#define EACH_LANE(F, d) F(0, d), F(1, d), F(2, d), F(3, d)
#endif

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

// Places for `chosen`, by lane and distance: the lane itself, or the one at a distance that is a power of two.
#define ITSELF(lane, distance) (lane)
#define ACROSS(lane, distance) ((lane) ^ (distance))
#define EVEN(lane, distance) ((lane) & ~1)
#define ODD(lane, distance) ((lane) | 1)

// Round to bf16: the nearest one, and of two the even one.
static inline halves rounded(floats values) {
    words bits = (words)values;
    return __builtin_convertvector((bits + 0x7fff + ((bits >> 16) & 1)) >> 16, halves);
}

#ifdef FLOAT32
typedef float number;

static inline floats load(const number *from) {
    floats values;
    memcpy(&values, from, sizeof values);
    return values;
}

static inline void store(number *to, floats values) { memcpy(to, &values, sizeof values); }
#else
typedef uint16_t number;

static inline floats load(const number *from) {
    halves half;
    memcpy(&half, from, sizeof half);
    return (floats)(__builtin_convertvector(half, words) << 16);
}

static inline void store(number *to, floats values) {
    halves half = rounded(values);
    memcpy(to, &half, sizeof half);
}
#endif

static inline floats load_floats(const float *from) {
    floats values;
    memcpy(&values, from, sizeof values);
    return values;
}

static inline void store_floats(float *to, floats values) { memcpy(to, &values, sizeof values); }

// a where the bits of `where` are set, else b.
static inline floats either(ints where, floats a, floats b) { return (floats)((where & (ints)a) | (~where & (ints)b)); }

// The larger of both; b if any of them is NaN.
static inline floats larger(floats a, floats b) { return either(a > b, a, b); }

// Combine all numbers of a vector: those that are half of its lanes apart first, then a quarter, and so on.
#define COMBINE(combine, values, d) values = combine(values, chosen(values, values, EACH_LANE(ACROSS, d)));
#if defined(__AVX512F__)
#define FOLD(combine, values) \
    COMBINE(combine, values, 8) COMBINE(combine, values, 4) COMBINE(combine, values, 2) COMBINE(combine, values, 1)
#elif defined(__AVX__)
#define FOLD(combine, values) COMBINE(combine, values, 4) COMBINE(combine, values, 2) COMBINE(combine, values, 1)
#else
#define FOLD(combine, values) COMBINE(combine, values, 2) COMBINE(combine, values, 1)
#endif

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
    const ints places = {EACH_LANE(ITSELF, 0)};
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
