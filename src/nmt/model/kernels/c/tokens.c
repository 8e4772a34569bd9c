// What training computes for each token or number on its own, in bf16, for one thread.
//
// Counts and widths are multiples of LANES, except for the number of words.

#include "vectors.h"

// Replace rows of logits by their softmax, minus 1 - smoothing at the label; write the log-sum-exp's two parts.
// `buffer` holds a row of float32, filled up to a multiple of LANES.
void softmax_gradient(uint16_t *logits, const int64_t *labels, float smoothing, float *largest, float *total,
                      floats *buffer, int64_t rows, int64_t width) {
    int64_t whole = width / LANES, rest = width % LANES;
    uint16_t last[LANES];
    for (int64_t row = 0; row < rows; row++, logits += width) {
        for (int lane = 0; lane < LANES; lane++) last[lane] = lane < rest ? logits[whole * LANES + lane] : 0xff80;  // -inf
        floats top = load(last);
        for (int64_t block = 0; block < whole; block++) top = larger(load(logits + block * LANES), top);
        largest[row] = largest_of(top);
        floats sums = exponential(load(last) - largest[row]);
        for (int lane = rest; lane < LANES; lane++) sums[lane] = 0;
        buffer[whole] = sums;
        for (int64_t block = 0; block < whole; block++) {
            buffer[block] = exponential(load(logits + block * LANES) - largest[row]);
            sums += buffer[block];
        }
        total[row] = sum_of(sums);
        ((float *)buffer)[labels[row]] -= (1 - smoothing) * total[row];
        float scale = 1 / total[row];
        for (int64_t block = 0; block < whole; block++) store(logits + block * LANES, buffer[block] * scale);
        store(last, buffer[whole] * scale);
        memcpy(logits + whole * LANES, last, rest * sizeof *last);
    }
}

// Rotate pairs of coordinates of heads by angles whose sines and cosines alternate; `sign` -1 rotates back.
void rotate(const uint16_t *heads, int64_t token_stride, const uint16_t *sinusoids, float sign, uint16_t *rotated,
            int64_t tokens, int64_t count, int64_t width) {
    const floats signs = {-1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1};
    for (int64_t token = 0; token < tokens; token++)
        for (int64_t head = 0; head < count; head++)
            for (int64_t place = 0; place < width; place += LANES) {
                floats angle = load(sinusoids + token * width + place);
                floats from = load(heads + token * token_stride + head * width + place);
                floats sine = chosen(angle, angle, 0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12, 14, 14);
                floats cosine = chosen(angle, angle, 1, 1, 3, 3, 5, 5, 7, 7, 9, 9, 11, 11, 13, 13, 15, 15);
                floats swapped = chosen(from, from, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
                store(rotated + (token * count + head) * width + place, from * cosine + swapped * (sine * signs * sign));
            }
}

// Which numbers a dropout keeps: those whose 16 random bits are at least `first`; `scale` makes up for the others.
typedef struct {
    const int16_t *draws;
    int16_t first;
    float scale;
} dropout;

static inline floats factors(dropout kept, int64_t place) {
    shorts draws;
    memcpy(&draws, kept.draws + place, sizeof draws);
    ints is_kept = __builtin_convertvector(draws >= kept.first, ints);
    return (floats)(is_kept & (ints)((floats){0} + kept.scale));
}

// sum = stream + Dropout(branch)
void add_dropped(const uint16_t *stream, const uint16_t *branch, dropout kept, uint16_t *sum, int64_t count) {
    for (int64_t place = 0; place < count; place += LANES)
        store(sum + place, load(stream + place) + load(branch + place) * factors(kept, place));
}

// dropped = Dropout(numbers)
void drop(const uint16_t *numbers, dropout kept, uint16_t *dropped, int64_t count) {
    for (int64_t place = 0; place < count; place += LANES)
        store(dropped + place, load(numbers + place) * factors(kept, place));
}

// The sums of all rows.
void sum_rows(const uint16_t *rows, float *sums, int64_t count, int64_t width) {
    memset(sums, 0, width * sizeof *sums);
    for (int64_t row = 0; row < count; row++, rows += width)
        for (int64_t place = 0; place < width; place += LANES)
            store_floats(sums + place, load_floats(sums + place) + load(rows + place));
}

// result = (rows - row) * scale, in float32
void scaled_difference(const uint16_t *rows, const float *row, float scale, float *result, int64_t count,
                       int64_t width) {
    for (int64_t start = 0; start < count * width; start += width)
        for (int64_t place = 0; place < width; place += LANES)
            store_floats(result + start + place, (load(rows + start + place) - load_floats(row + place)) * scale);
}

// Keep the gradient where the ReLU's result is positive, and sum up its rows.
void rectifier_gradient(const uint16_t *gradient, const uint16_t *rectified, uint16_t *kept, float *sums, int64_t rows,
                        int64_t width) {
    memset(sums, 0, width * sizeof *sums);
    for (int64_t row = 0; row < rows; row++, gradient += width, rectified += width, kept += width)
        for (int64_t place = 0; place < width; place += LANES) {
            floats given = load(gradient + place);
            floats result = (floats)((ints)given & ~(load(rectified + place) <= 0));
            store(kept + place, result);
            store_floats(sums + place, load_floats(sums + place) + result);
        }
}

// A row of the sum that a layer norm divides: its numbers less their mean, and what they are multiplied by.
static inline float centre(floats *row, int64_t width, float eps) {
    floats total = {0}, squares = {0};
    for (int64_t block = 0; block < width / LANES; block++) total += row[block];
    float mean = sum_of(total) / width;
    for (int64_t block = 0; block < width / LANES; block++) {
        row[block] -= mean;
        squares += row[block] * row[block];
    }
    return 1 / __builtin_sqrtf(sum_of(squares) / width + eps);
}

static inline void read_sum(floats *row, const uint16_t *stream, const uint16_t *branch, dropout kept, int64_t start,
                            int64_t width) {
    for (int64_t place = 0; place < width; place += LANES)
        row[place / LANES] = load(stream + start + place) + load(branch + start + place) * factors(kept, start + place);
}

// normed = LayerNorm(stream + Dropout(branch)); `row` has room for a row of float32.
void add_norm(const uint16_t *stream, const uint16_t *branch, dropout kept, const float *gain, const float *bias,
              float eps, uint16_t *normed, floats *row, int64_t rows, int64_t width) {
    for (int64_t start = 0; start < rows * width; start += width) {
        read_sum(row, stream, branch, kept, start, width);
        float scale = centre(row, width, eps);
        for (int64_t place = 0; place < width; place += LANES)
            store(normed + start + place,
                  row[place / LANES] * scale * load_floats(gain + place) + load_floats(bias + place));
    }
}

// The gradients of stream, branch, gain and bias, given that of the result.
void add_norm_backward(const uint16_t *gradient, const uint16_t *stream, const uint16_t *branch, dropout kept,
                       const float *gain, float eps, uint16_t *to_stream, uint16_t *to_branch, float *to_gain,
                       float *to_bias, floats *row, int64_t rows, int64_t width) {
    memset(to_gain, 0, width * sizeof *to_gain);
    memset(to_bias, 0, width * sizeof *to_bias);
    for (int64_t start = 0; start < rows * width; start += width) {
        read_sum(row, stream, branch, kept, start, width);
        float scale = centre(row, width, eps);
        floats total = {0}, along = {0};
        for (int64_t place = 0; place < width; place += LANES) {
            floats given = load(gradient + start + place), weighted = given * load_floats(gain + place);
            row[place / LANES] *= scale;
            store_floats(to_gain + place, load_floats(to_gain + place) + given * row[place / LANES]);
            store_floats(to_bias + place, load_floats(to_bias + place) + given);
            total += weighted;
            along += weighted * row[place / LANES];
        }
        float mean = sum_of(total) / width, slope = sum_of(along) / width;
        for (int64_t place = 0; place < width; place += LANES) {
            floats weighted = load(gradient + start + place) * load_floats(gain + place);
            floats result = (weighted - mean - slope * row[place / LANES]) * scale;
            store(to_stream + start + place, result);
            store(to_branch + start + place, result * factors(kept, start + place));
        }
    }
}
