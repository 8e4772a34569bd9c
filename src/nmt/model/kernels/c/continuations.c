// The most probable continuations of the hypotheses of a beam search, whose scores are read twice and not changed;
// continuations.py calls it.

#include "threads.h"
#include "vectors.h"

#include <math.h>

// Rows with fewer numbers than this are not worth a second thread; tests define a smaller one.
#ifndef FEW
#define FEW (1 << 14)
#endif

enum { CHUNK = 64 };  // a chunk whose maximum is too low is not read again

typedef struct {
    const float *scores;  // (rows, width) of the next tokens
    const float *open;    // (rows) log-probabilities of the hypotheses
    int64_t rows, width, rows_per_sentence;
    const int64_t *never;  // tokens that are never chosen
    int64_t never_count;
    int64_t count;    // tokens of each row that may be chosen
    float *highest;   // (rows, count) their log-probabilities, descending
    int64_t *tokens;  // (rows, count)
    float *maxima;    // for each thread, of all chunks
    int64_t best;     // continuations of each sentence
    float *totals;    // (sentences, best) their log-probabilities, descending
    int64_t *chosen;  // (sentences, best) their tokens
    int64_t *parents; // (sentences, best) the rows that they continue
} continuations;

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

static int is_chosen(const continuations *it, int64_t token) {
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
    const continuations *it = task;
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

// Merge the tokens of a sentence's rows, each of which has them in order. A NaN counts as the highest, so none is lost.
static void merge(const continuations *it, int64_t sentence) {
    int64_t first = sentence * it->rows_per_sentence, taken[it->rows_per_sentence];
    for (int64_t row = 0; row < it->rows_per_sentence; row++) taken[row] = 0;
    for (int64_t place = sentence * it->best; place < (sentence + 1) * it->best; place++) {
        int64_t next = -1;
        float highest = 0;
        for (int64_t row = 0; row < it->rows_per_sentence; row++) {
            if (taken[row] == it->count) continue;
            float total = it->highest[(first + row) * it->count + taken[row]] + it->open[first + row];
            if (next >= 0 && total <= highest) continue;
            next = row;
            highest = total;
        }
        it->totals[place] = highest;
        it->chosen[place] = it->tokens[(first + next) * it->count + taken[next]++];
        it->parents[place] = first + next;
    }
}

// Choose the `best` most probable continuations of each sentence, at most `count` from each of its rows.
void choose_continuations(continuations *it) {
    divide(select_part, it, it->rows, 1 + FEW / it->width);
    for (int64_t sentence = 0; sentence < it->rows / it->rows_per_sentence; sentence++) merge(it, sentence);
}
