// All layers of an encoder, or of a decoder whose keys and values are cached, in float32 in one call: a few rows take
// less time than the calls of the operations from Python. layers.py calls them.
//
// The widths of heads and of the stream are multiples of LANES.

#include "products.h"
#include "threads.h"
#include "vectors.h"

// Rows with fewer numbers than this are not worth a second thread; tests define a smaller one.
#ifndef FEW
#define FEW (1 << 14)
#endif

typedef struct {
    const float *gain, *bias;
} norm;

typedef struct {
    norm norms[3];  // of self-attention, feed-forward and cross-attention
    matrix query_key_value, output, inner, outer, query, source_output;
} layer;

// Keys and values of a layer: (sentences, key_heads, slots, width) and (sources, key_heads, source_slots, width).
typedef struct {
    float *keys, *values;
    const float *source_keys, *source_values;
} cache;

typedef struct {
    const layer *layers;
    const cache *caches;
    int64_t depth, width, heads, key_heads, key_width, value_width;
    float eps;
    int32_t norms_first;  // pre-norm
    int64_t rows, rows_per_sentence, slots, used, source_slots;
    const float *mask;      // (rows, slots): 0 where a row sees a slot; the last of those in use are the rows' own
    const float *rotation;  // (rows, key_width) sinusoids that rotate queries and keys, or 0
    const int64_t *sources, *source_lengths;  // of each row; in an encoder, the first token of its sentence
    float *stream, *normed, *projected, *attended;  // (rows, ...)
    float *buffers;                                 // for each thread two rows of slots
    int64_t buffer;
    void *scratch;  // of products in int8
} step;

typedef struct {
    const step *it;
    const norm *by;
    const cache *cached;
    float *result;
} part_of_step;

static void norm_part(void *task, int64_t first, int64_t last, int64_t thread) {
    const part_of_step *part = task;
    int64_t width = part->it->width;
    (void)thread;
    for (int64_t start = first * width; start < last * width; start += width) {
        const float *row = part->it->stream + start;
        floats total = {0}, squares = {0};
        for (int64_t place = 0; place < width; place += LANES) total += load_floats(row + place);
        float mean = sum_of(total) / width;
        for (int64_t place = 0; place < width; place += LANES) {
            floats centred = load_floats(row + place) - mean;
            squares += centred * centred;
        }
        float scale = 1 / __builtin_sqrtf(sum_of(squares) / width + part->it->eps);
        for (int64_t place = 0; place < width; place += LANES)
            store_floats(part->result + start + place, (load_floats(row + place) - mean) * scale *
                         load_floats(part->by->gain + place) + load_floats(part->by->bias + place));
    }
}

static void norm_rows(const step *it, const norm *by, float *result) {
    part_of_step part = {.it = it, .by = by, .result = result};
    divide(norm_part, &part, it->rows, 1 + FEW / it->width);
}

#define SIGN(lane, distance) ((lane) & 1 ? 1 : -1)

// Rotate pairs of coordinates of heads by angles whose sines and cosines alternate.
static void rotate_heads(float *heads, const float *sinusoids, int64_t count, int64_t width) {
    const floats signs = {EACH_LANE(SIGN, 0)};
    for (float *head = heads; head < heads + count * width; head += width)
        for (int64_t place = 0; place < width; place += LANES) {
            floats angle = load_floats(sinusoids + place), from = load_floats(head + place);
            floats sine = chosen(angle, angle, EACH_LANE(EVEN, 0)), cosine = chosen(angle, angle, EACH_LANE(ODD, 0));
            store_floats(head + place, from * cosine + chosen(from, from, EACH_LANE(ACROSS, 1)) * (sine * signs));
        }
}

// Numbers from one head, and from one place, to the next.
typedef struct {
    int64_t head, place;
} stride;

// What a row attends to: of each head, `count` keys and values, at the places `seen` or one by one.
typedef struct {
    const float *keys, *values;
    stride key, value;
    const int32_t *seen;
    int64_t count;
} memory;

static inline int64_t place_of(memory of, int64_t index) { return of.seen ? of.seen[index] : index; }

// Turn scores, filled up to a multiple of LANES, into e^(score - largest); return their sum.
static float exponentials(float *scores, int64_t count) {
    int64_t end = (count + LANES - 1) / LANES * LANES;
    floats top = (floats){0} - __builtin_inff(), total = {0};
    for (int64_t index = count; index < end; index++) scores[index] = -__builtin_inff();
    for (int64_t index = 0; index < end; index += LANES) top = larger(load_floats(scores + index), top);
    float largest = largest_of(top);
    for (int64_t index = 0; index < end; index += LANES) {
        floats weights = exponential(load_floats(scores + index) - largest);
        total += weights;
        store_floats(scores + index, weights);
    }
    return sum_of(total);
}

// attended = softmax(Q K^T / sqrt(key_width)) V for all heads of a row
static void attend_row(const step *it, const float *queries, memory to, float *weights, float *attended) {
    float scale = 1 / __builtin_sqrtf(it->key_width);
    for (int64_t head = 0; head < it->heads; head++) {
        int64_t key_head = head / (it->heads / it->key_heads);
        const float *query = queries + head * it->key_width;
        const float *keys = to.keys + key_head * to.key.head, *values = to.values + key_head * to.value.head;
        for (int64_t index = 0; index < to.count; index++) {
            const float *key = keys + place_of(to, index) * to.key.place;
            floats products = {0};
            for (int64_t place = 0; place < it->key_width; place += LANES)
                products += load_floats(query + place) * load_floats(key + place);
            weights[index] = sum_of(products) * scale;
        }
        float total = exponentials(weights, to.count);
        for (int64_t place = 0; place < it->value_width; place += LANES, attended += LANES) {
            floats sums = {0};
            for (int64_t index = 0; index < to.count; index++)
                sums += weights[index] * load_floats(values + place_of(to, index) * to.value.place + place);
            store_floats(attended, sums / total);
        }
    }
}

// Return what is in the slots of a sentence or of a source.
static inline memory in_slots(const step *it, const float *keys, const float *values, int64_t slots) {
    return (memory){.keys = keys, .values = values, .key = {slots * it->key_width, it->key_width},
                    .value = {slots * it->value_width, it->value_width}};
}

// Copy the heads of a row to a slot of its sentence.
static void keep(float *slots, const float *heads, int64_t count, int64_t stride, int64_t width) {
    for (int64_t head = 0; head < count; head++)
        memcpy(slots + head * stride * width, heads + head * width, width * sizeof *heads);
}

static void attend_self_part(void *task, int64_t first, int64_t last, int64_t thread) {
    const part_of_step *part = task;
    const step *it = part->it;
    float *weights = it->buffers + 2 * thread * it->buffer;
    int32_t *seen = (int32_t *)(weights + it->buffer);
    int64_t key_numbers = it->key_heads * it->key_width, value_numbers = it->key_heads * it->value_width;
    int64_t query_numbers = it->heads * it->key_width;
    for (int64_t row = first; row < last; row++) {
        float *queries = it->projected + row * (query_numbers + key_numbers + value_numbers);
        float *keys = queries + query_numbers, *values = keys + key_numbers;
        if (it->rotation)
            rotate_heads(queries, it->rotation + row * it->key_width, it->heads + it->key_heads, it->key_width);
        int64_t sentence = row / it->rows_per_sentence * it->slots;
        int64_t slot = it->used - it->rows_per_sentence + row % it->rows_per_sentence;
        memory to = in_slots(it, part->cached->keys + sentence * key_numbers,
                             part->cached->values + sentence * value_numbers, it->slots);
        to.seen = seen;
        keep((float *)to.keys + slot * it->key_width, keys, it->key_heads, it->slots, it->key_width);
        keep((float *)to.values + slot * it->value_width, values, it->key_heads, it->slots, it->value_width);
        const float *mask = it->mask + row * it->slots;
        for (int64_t place = 0; place < it->used; place++) {
            seen[to.count] = (int32_t)place;
            to.count += mask[place] == 0;
        }
        attend_row(it, queries, to, weights, it->attended + row * it->heads * it->value_width);
    }
}

static void attend_source_part(void *task, int64_t first, int64_t last, int64_t thread) {
    const part_of_step *part = task;
    const step *it = part->it;
    for (int64_t row = first; row < last; row++) {
        int64_t skipped = it->sources[row] * it->key_heads * it->source_slots;
        memory to = in_slots(it, part->cached->source_keys + skipped * it->key_width,
                             part->cached->source_values + skipped * it->value_width, it->source_slots);
        to.count = it->source_lengths[row];
        attend_row(it, it->projected + row * it->heads * it->key_width, to, it->buffers + 2 * thread * it->buffer,
                   it->attended + row * it->heads * it->value_width);
    }
}

static inline int64_t projected_numbers(const step *it) {
    return (it->heads + it->key_heads) * it->key_width + it->key_heads * it->value_width;
}

static void rotate_part(void *task, int64_t first, int64_t last, int64_t thread) {
    const step *it = ((const part_of_step *)task)->it;
    (void)thread;
    for (int64_t row = first; row < last; row++)
        rotate_heads(it->projected + row * projected_numbers(it), it->rotation + row * it->key_width,
                     it->heads + it->key_heads, it->key_width);
}

// Attend within sentences.
static void attend_sentence_part(void *task, int64_t first, int64_t last, int64_t thread) {
    const step *it = ((const part_of_step *)task)->it;
    int64_t numbers = projected_numbers(it), key_place = it->heads * it->key_width;
    for (int64_t row = first; row < last; row++) {
        const float *keys = it->projected + it->sources[row] * numbers + key_place;
        memory to = {.keys = keys, .values = keys + it->key_heads * it->key_width, .key = {it->key_width, numbers},
                     .value = {it->value_width, numbers}, .count = it->source_lengths[row]};
        attend_row(it, it->projected + row * numbers, to, it->buffers + 2 * thread * it->buffer,
                   it->attended + row * it->heads * it->value_width);
    }
}

// Return what a sub-layer reads.
static const float *input_of(const step *it, const norm *by) {
    if (!it->norms_first) return it->stream;
    norm_rows(it, by, it->normed);
    return it->normed;
}

// Add the last product of a sub-layer to the stream.
static void add_output(const step *it, const norm *by, const matrix *output, const float *rows) {
    multiply(output, rows, it->rows, it->stream, ADD, it->scratch);
    if (!it->norms_first) norm_rows(it, by, it->stream);
}

static void feed_forward(const step *it, const layer *by) {
    multiply(&by->inner, input_of(it, by->norms + 1), it->rows, it->projected, RECTIFY, it->scratch);
    add_output(it, by->norms + 1, &by->outer, it->projected);
}

// Run all layers over the `stream` of new tokens, after their slots have been added to the mask.
void decode(const step *it) {
    for (int64_t index = 0; index < it->depth; index++) {
        const layer *by = it->layers + index;
        part_of_step part = {.it = it, .cached = it->caches + index};
        multiply(&by->query_key_value, input_of(it, by->norms), it->rows, it->projected, STORE, it->scratch);
        divide(attend_self_part, &part, it->rows, 1 + FEW / 16 / it->width);
        add_output(it, by->norms, &by->output, it->attended);
        multiply(&by->query, input_of(it, by->norms + 2), it->rows, it->projected, STORE, it->scratch);
        divide(attend_source_part, &part, it->rows, 1 + FEW / 16 / it->width);
        add_output(it, by->norms + 2, &by->source_output, it->attended);
        feed_forward(it, by);
    }
}

// Run all layers over the `stream` of sentences.
void encode(const step *it) {
    part_of_step part = {.it = it};
    for (const layer *by = it->layers; by < it->layers + it->depth; by++) {
        multiply(&by->query_key_value, input_of(it, by->norms), it->rows, it->projected, STORE, it->scratch);
        if (it->rotation) divide(rotate_part, &part, it->rows, 1 + FEW / it->width);
        divide(attend_sentence_part, &part, it->rows, 1 + FEW / 16 / it->width);
        add_output(it, by->norms, &by->output, it->attended);
        feed_forward(it, by);
    }
}
