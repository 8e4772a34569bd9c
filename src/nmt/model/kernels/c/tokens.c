// What training computes for each token or number on its own, with the rows divided between threads.
//
// Counts and widths are multiples of LANES, except for the number of words.

#include "threads.h"
#include "vectors.h"

// Fewer numbers than this are not worth a second thread; tests define a smaller one.
#ifndef FEW
#define FEW (1 << 14)
#endif

static inline int64_t few_rows(int64_t width) { return 1 + FEW / width; }

typedef struct {
    number *logits;
    const int64_t *labels;
    float smoothing, *largest, *total;
    float *buffers;  // for each thread a row, filled up to a multiple of LANES
    int64_t width;
} gradient_task;

static void softmax_gradient_part(void *task, int64_t first, int64_t last, int64_t thread) {
    gradient_task *it = task;
    int64_t width = it->width, whole = width / LANES, rest = width % LANES;
    floats *buffer = (floats *)(it->buffers + thread * (whole + 1) * LANES);
    const floats lowest = (floats){0} - __builtin_inff();
    for (int64_t row = first; row < last; row++) {
        number *logits = it->logits + row * width, end[LANES] = {0};
        memcpy(end, logits + whole * LANES, rest * sizeof *end);
        floats top = either(below(rest, 0), load(end), lowest);
        for (int64_t block = 0; block < whole; block++) top = larger(load(logits + block * LANES), top);
        float largest = largest_of(top);
        floats sums = (floats)(below(rest, 0) & (ints)exponential(load(end) - largest));
        buffer[whole] = sums;
        for (int64_t block = 0; block < whole; block++) {
            buffer[block] = exponential(load(logits + block * LANES) - largest);
            sums += buffer[block];
        }
        float total = sum_of(sums), scale = 1 / total;
        ((float *)buffer)[it->labels[row]] -= (1 - it->smoothing) * total;
        for (int64_t block = 0; block < whole; block++) store(logits + block * LANES, buffer[block] * scale);
        store(end, buffer[whole] * scale);
        memcpy(logits + whole * LANES, end, rest * sizeof *end);
        it->largest[row] = largest;
        it->total[row] = total;
    }
}

// Replace rows of logits by their softmax, minus 1 - smoothing at the label; write the log-sum-exp's two parts.
void softmax_gradient(number *logits, const int64_t *labels, float smoothing, float *largest, float *total,
                      float *buffers, int64_t rows, int64_t width) {
    gradient_task task = {logits, labels, smoothing, largest, total, buffers, width};
    divide(softmax_gradient_part, &task, rows, few_rows(width));
}

typedef struct {
    const number *heads, *sinusoids;
    number *rotated;
    int64_t token_stride, count, width;
    float sign;
} rotation;

#define SIGN(lane, distance) ((lane) & 1 ? 1 : -1)

static void rotate_part(void *task, int64_t first, int64_t last, int64_t thread) {
    rotation *it = task;
    const floats signs = {EACH_LANE(SIGN, 0)};
    (void)thread;
    for (int64_t token = first; token < last; token++)
        for (int64_t head = 0; head < it->count; head++)
            for (int64_t place = 0; place < it->width; place += LANES) {
                floats angle = load(it->sinusoids + token * it->width + place);
                floats from = load(it->heads + token * it->token_stride + head * it->width + place);
                floats sine = chosen(angle, angle, EACH_LANE(EVEN, 0)), cosine = chosen(angle, angle, EACH_LANE(ODD, 0));
                floats swapped = chosen(from, from, EACH_LANE(ACROSS, 1));
                store(it->rotated + (token * it->count + head) * it->width + place,
                      from * cosine + swapped * (sine * signs * it->sign));
            }
}

// Rotate pairs of coordinates of heads by angles whose sines and cosines alternate; `sign` -1 rotates back.
void rotate(const number *heads, int64_t token_stride, const number *sinusoids, float sign, number *rotated,
            int64_t tokens, int64_t count, int64_t width) {
    rotation task = {heads, sinusoids, rotated, token_stride, count, width, sign};
    divide(rotate_part, &task, tokens, few_rows(count * width));
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

typedef struct {
    const number *stream, *branch;
    dropout kept;
    number *result;
} addition;

static void add_part(void *task, int64_t first, int64_t last, int64_t thread) {
    addition *it = task;
    (void)thread;
    for (int64_t place = first * LANES; place < last * LANES; place += LANES) {
        floats branch = load(it->branch + place) * factors(it->kept, place);
        store(it->result + place, it->stream ? load(it->stream + place) + branch : branch);
    }
}

// sum = stream + Dropout(branch); without a stream, only Dropout(branch)
void add_dropped(const number *stream, const number *branch, dropout kept, number *sum, int64_t count) {
    addition task = {stream, branch, kept, sum};
    divide(add_part, &task, count / LANES, FEW / LANES);
}

typedef struct {
    const number *rows, *rectified;
    number *kept;
    float *sums;
    int64_t count, width;
} columns;

static void sum_part(void *task, int64_t first, int64_t last, int64_t thread) {
    columns *it = task;
    (void)thread;
    memset(it->sums + first * LANES, 0, (last - first) * LANES * sizeof *it->sums);
    for (int64_t start = 0; start < it->count * it->width; start += it->width)
        for (int64_t place = first * LANES; place < last * LANES; place += LANES)
            store_floats(it->sums + place, load_floats(it->sums + place) + load(it->rows + start + place));
}

// The sums of all rows. The columns are divided, so that the result does not depend on the number of threads.
void sum_rows(const number *rows, float *sums, int64_t count, int64_t width) {
    columns task = {rows, 0, 0, sums, count, width};
    divide(sum_part, &task, width / LANES, count * width < FEW ? INT64_MAX : 1);
}

static void rectifier_part(void *task, int64_t first, int64_t last, int64_t thread) {
    columns *it = task;
    (void)thread;
    memset(it->sums + first * LANES, 0, (last - first) * LANES * sizeof *it->sums);
    for (int64_t start = 0; start < it->count * it->width; start += it->width)
        for (int64_t place = first * LANES; place < last * LANES; place += LANES) {
            floats given = load(it->rows + start + place);
            floats result = (floats)((ints)given & ~(load(it->rectified + start + place) <= 0));
            store(it->kept + start + place, result);
            store_floats(it->sums + place, load_floats(it->sums + place) + result);
        }
}

// Keep the gradient where the ReLU's result is positive, and sum up its rows.
void rectifier_gradient(const number *gradient, const number *rectified, number *kept, float *sums, int64_t rows,
                        int64_t width) {
    columns task = {gradient, rectified, kept, sums, rows, width};
    divide(rectifier_part, &task, width / LANES, rows * width < FEW ? INT64_MAX : 1);
}

typedef struct {
    const number *gradient, *stream, *branch;
    dropout kept;
    const float *gain, *bias;
    float eps;
    number *normed, *to_stream, *to_branch;
    float *buffers;  // for each thread a row, and backward also the sums for gain and bias
    int64_t width;
} norm;

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

static inline void read_sum(floats *row, const norm *it, int64_t start) {
    for (int64_t place = 0; place < it->width; place += LANES)
        row[place / LANES] =
            load(it->stream + start + place) + load(it->branch + start + place) * factors(it->kept, start + place);
}

static void norm_part(void *task, int64_t first, int64_t last, int64_t thread) {
    norm *it = task;
    floats *row = (floats *)(it->buffers + thread * it->width);
    for (int64_t start = first * it->width; start < last * it->width; start += it->width) {
        read_sum(row, it, start);
        float scale = centre(row, it->width, it->eps);
        for (int64_t place = 0; place < it->width; place += LANES)
            store(it->normed + start + place,
                  row[place / LANES] * scale * load_floats(it->gain + place) + load_floats(it->bias + place));
    }
}

// normed = LayerNorm(stream + Dropout(branch)); `buffers` has room for a row per thread.
void add_norm(const number *stream, const number *branch, dropout kept, const float *gain, const float *bias,
              float eps, number *normed, float *buffers, int64_t rows, int64_t width) {
    norm task = {.stream = stream, .branch = branch, .kept = kept, .gain = gain, .bias = bias, .eps = eps,
                 .normed = normed, .buffers = buffers, .width = width};
    divide(norm_part, &task, rows, few_rows(width));
}

static void norm_backward_part(void *task, int64_t first, int64_t last, int64_t thread) {
    norm *it = task;
    int64_t width = it->width;
    float *to_gain = it->buffers + 3 * thread * width, *to_bias = to_gain + width;
    floats *row = (floats *)(to_bias + width);
    for (int64_t start = first * width; start < last * width; start += width) {
        read_sum(row, it, start);
        float scale = centre(row, width, it->eps);
        floats total = {0}, along = {0};
        for (int64_t place = 0; place < width; place += LANES) {
            floats given = load(it->gradient + start + place), weighted = given * load_floats(it->gain + place);
            row[place / LANES] *= scale;
            store_floats(to_gain + place, load_floats(to_gain + place) + given * row[place / LANES]);
            store_floats(to_bias + place, load_floats(to_bias + place) + given);
            total += weighted;
            along += weighted * row[place / LANES];
        }
        float mean = sum_of(total) / width, slope = sum_of(along) / width;
        for (int64_t place = 0; place < width; place += LANES) {
            floats weighted = load(it->gradient + start + place) * load_floats(it->gain + place);
            floats result = (weighted - mean - slope * row[place / LANES]) * scale;
            store(it->to_stream + start + place, result);
            store(it->to_branch + start + place, result * factors(it->kept, start + place));
        }
    }
}

// The gradients of stream and branch, given that of the result. `buffers` has three rows per thread, all zeros: the
// thread's part of the gradients of gain and of bias, and room for a row.
void add_norm_backward(const number *gradient, const number *stream, const number *branch, dropout kept,
                       const float *gain, float eps, number *to_stream, number *to_branch, float *buffers,
                       int64_t rows, int64_t width) {
    norm task = {.gradient = gradient, .stream = stream, .branch = branch, .kept = kept, .gain = gain, .eps = eps,
                 .to_stream = to_stream, .to_branch = to_branch, .buffers = buffers, .width = width};
    divide(norm_backward_part, &task, rows, few_rows(width));
}
