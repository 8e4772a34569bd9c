// The highest log-probabilities of rows of scores, which are read twice and not changed; highest.py calls it.

#include "threads.h"
#include "vectors.h"

#include <math.h>

// Rows with fewer numbers than this are not worth a second thread; tests define a smaller one.
#ifndef FEW
#define FEW (1 << 14)
#endif

enum { CHUNK = 64 };  // a chunk whose maximum is too low is not read again

typedef struct {
    const float *scores;
    int64_t width, count;
    const int64_t *never;
    int64_t never_count;
    float *highest;   // (rows, count), descending
    int64_t *tokens;  // (rows, count)
    float *maxima;    // for each thread, of all chunks
} selection;

static inline floats masked(const float *scores, int64_t place, int64_t end) {
    if (place + LANES <= end) return load_floats(scores + place);
    float rest[LANES];
    for (int64_t lane = 0; lane < LANES; lane++) rest[lane] = place + lane < end ? scores[place + lane] : -INFINITY;
    return load_floats(rest);
}

// Return the largest score, and write those of all chunks. A NaN is found by `log_of_sum`.
static float find_maxima(const float *scores, int64_t width, float *maxima) {
    floats top = (floats){0} - INFINITY;
    for (int64_t start = 0; start < width; start += CHUNK) {
        floats chunk = (floats){0} - INFINITY;
        for (int64_t place = start; place < width && place < start + CHUNK; place += LANES)
            chunk = larger(masked(scores, place, width), chunk);
        maxima[start / CHUNK] = largest_of(chunk);
        top = larger(chunk, top);
    }
    return largest_of(top);
}

static float log_of_sum(const float *scores, int64_t width, float largest) {
    floats sums = {0}, others = {0};
    int64_t place = 0;
    for (; place + 2 * LANES <= width; place += 2 * LANES) {
        sums += exponential(load_floats(scores + place) - largest);
        others += exponential(load_floats(scores + place + LANES) - largest);
    }
    for (; place < width; place += LANES) sums += exponential(masked(scores, place, width) - largest);
    return largest + logf(sum_of(sums + others));
}

static int is_chosen(const selection *it, int64_t token) {
    for (int64_t index = 0; index < it->never_count; index++)
        if (it->never[index] == token) return 0;
    return 1;
}

static void insert(float *highest, int64_t *tokens, int64_t count, float score, int64_t token) {
    int64_t place = count - 1;
    for (; place > 0 && highest[place - 1] < score; place--) {
        highest[place] = highest[place - 1];
        tokens[place] = tokens[place - 1];
    }
    highest[place] = score;
    tokens[place] = token;
}

static void select_part(void *task, int64_t first, int64_t last, int64_t thread) {
    const selection *it = task;
    float *maxima = it->maxima + thread * ((it->width + CHUNK - 1) / CHUNK);
    for (int64_t row = first; row < last; row++) {
        const float *scores = it->scores + row * it->width;
        float *highest = it->highest + row * it->count, *lowest = highest + it->count - 1;
        int64_t *tokens = it->tokens + row * it->count;
        float total = log_of_sum(scores, it->width, find_maxima(scores, it->width, maxima));
        for (int64_t index = 0; index < it->count; index++) {
            highest[index] = -INFINITY;
            tokens[index] = 0;
        }
        for (int64_t start = 0; start < it->width; start += CHUNK) {
            if (!(maxima[start / CHUNK] > *lowest)) continue;
            for (int64_t token = start; token < it->width && token < start + CHUNK; token++)
                if (scores[token] > *lowest && is_chosen(it, token))
                    insert(highest, tokens, it->count, scores[token], token);
        }
        for (int64_t index = 0; index < it->count; index++) highest[index] -= total;
    }
}

// The `count` highest log-probabilities of each row of scores, and their tokens, without those that are never chosen.
void highest_log_probabilities(const float *scores, int64_t rows, int64_t width, int64_t count, const int64_t *never,
                               int64_t never_count, float *highest, int64_t *tokens, float *maxima) {
    selection task = {scores, width, count, never, never_count, highest, tokens, maxima};
    divide(select_part, &task, rows, 1 + FEW / width);
}
