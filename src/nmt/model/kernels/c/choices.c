// A step of beam search: the most probable continuations of the hypotheses of each sentence. translator_batch.py calls it.

#include <math.h>

#include "pool.h"
#include "transformer.h"
#include "vectors.h"

enum { PIECE = 64 };  // scores whose maximum is remembered: those of a piece with a low one are not read again
enum { BLOCK = 96 };  // rows whose scores are in memory

typedef struct {
    const float *open;          // (rows) log-probabilities of the hypotheses
    const uint8_t *must_end;    // (sentences) whether only the end may follow
    int64_t rows_per_sentence;
    int64_t never[2], end;      // the tokens that are never chosen, and the one that ends a hypothesis
    int64_t count;              // tokens of each row that may be chosen
    float *highest;             // (rows, count) their log-probabilities, descending
    int64_t *tokens;            // (rows, count)
    float *maxima;              // for each thread, of all pieces of a row
    int64_t best;               // continuations of each sentence
    float *totals;              // (sentences, best) their log-probabilities, descending
    int64_t *chosen, *parents;  // (sentences, best) their tokens, and the rows that they continue
} choices;

typedef struct {
    const choices *it;
    const float *scores;  // of the rows from `first_row` on
    int64_t width, first_row;
} block_of_rows;

static inline floats masked(const float *scores, int64_t place, int64_t end) {
    if (place + LANES <= end) return load_floats(scores + place);
    float rest[LANES];
    for (int64_t lane = 0; lane < LANES; lane++) rest[lane] = place + lane < end ? scores[place + lane] : -INFINITY;
    return load_floats(rest);
}

// Return the largest score, and write those of all pieces. A NaN is found by `log_of_sum`.
static float find_maxima(const float *scores, int64_t width, float *maxima) {
    floats top = (floats){0} - INFINITY;
    for (int64_t start = 0; start < width; start += PIECE) {
        floats piece = (floats){0} - INFINITY;
        for (int64_t place = start; place < width && place < start + PIECE; place += LANES)
            piece = larger(masked(scores, place, width), piece);
        maxima[start / PIECE] = largest_of(piece);
        top = larger(piece, top);
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
    const block_of_rows *block = task;
    const choices *it = block->it;
    int64_t width = block->width;
    float *maxima = it->maxima + thread * ((width + PIECE - 1) / PIECE);
    for (int64_t index = first; index < last; index++) {
        int64_t row = block->first_row + index, *tokens = it->tokens + row * it->count;
        const float *scores = block->scores + index * width;
        float *highest = it->highest + row * it->count, *lowest = highest + it->count - 1;
        float total = log_of_sum(scores, width, find_maxima(scores, width, maxima));
        for (int64_t place = 0; place < it->count; place++) {
            highest[place] = -INFINITY;
            tokens[place] = it->end;
        }
        if (it->must_end[row / it->rows_per_sentence]) {
            highest[0] = scores[it->end] - total;
            continue;
        }
        for (int64_t start = 0; start < width; start += PIECE) {
            if (!(maxima[start / PIECE] > *lowest)) continue;
            for (int64_t token = start; token < width && token < start + PIECE; token++)
                if (scores[token] > *lowest && token != it->never[0] && token != it->never[1])
                    insert(highest, tokens, it->count, scores[token], token);
        }
        for (int64_t place = 0; place < it->count; place++) highest[place] -= total;
    }
}

// Merge the continuations of a sentence's rows, each of which has them in order. A NaN counts as the highest, so none is lost.
static void merge(const choices *it, int64_t sentence) {
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

// Add a token to each row, and choose the `best` most probable continuations of each sentence.
void search_step(batch *it, int64_t rows, const choices *choice) {
    const matrix *projection = &it->by->projection;
    const float *last = add_tokens(it, rows);
    for (int64_t row = 0; row < rows; row += BLOCK) {
        int64_t count = rows - row < BLOCK ? rows - row : BLOCK;
        multiply(projection, last + row * it->by->width, count, it->scores, STORE, it->scratch);
        block_of_rows block = {choice, it->scores, projection->outputs, row};
        share(select_part, &block, count, count * projection->outputs * 4);
    }
    for (int64_t sentence = 0; sentence < rows / choice->rows_per_sentence; sentence++) merge(choice, sentence);
}
