// All of a Transformer that translates: the encoder in one call, and a step of the decoder in one call, in float32 but for
// the products. translator_batch.py calls it.

#include "transformer.h"

#include <math.h>

#include "pool.h"
#include "vectors.h"

typedef struct {
    const batch *it;
    const norm *by;
    const float *from;   // rows, or the heads of the sources of a layer
    float *to;           // rows, or the heads of the slots of a layer
    const float *vectors, *positions;
} part_of_call;

static inline int64_t key_value_numbers(const model *by) { return by->key_heads * (by->key_width + by->value_width); }

static inline int64_t projected_numbers(const model *by) { return by->heads * by->key_width + key_value_numbers(by); }

static void normalise_part(void *task, int64_t first, int64_t last, int64_t thread) {
    const part_of_call *part = task;
    const norm *by = part->by;
    int64_t width = part->it->by->width;
    (void)thread;
    for (int64_t start = first * width; start < last * width; start += width) {
        const float *row = part->from + start;
        floats total = {0}, squares = {0};
        if (by->bias)
            for (int64_t place = 0; place < width; place += LANES) total += load_floats(row + place);
        float mean = sum_of(total) / width;
        for (int64_t place = 0; place < width; place += LANES) {
            floats centred = load_floats(row + place) - mean;
            squares += centred * centred;
        }
        float scale = 1 / __builtin_sqrtf(sum_of(squares) / width + by->eps);
        for (int64_t place = 0; place < width; place += LANES) {
            floats normed = (load_floats(row + place) - mean) * scale * load_floats(by->gain + place);
            store_floats(part->to + start + place, by->bias ? normed + load_floats(by->bias + place) : normed);
        }
    }
}

static void normalise(const batch *it, const norm *by, float *to) {
    part_of_call part = {.it = it, .by = by, .from = it->stream, .to = to};
    share(normalise_part, &part, it->rows, it->rows * it->by->width * 4);
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

static void rotate_row(const model *by, float *projected, int64_t position) {
    if (by->rotation)
        rotate_heads(projected, by->rotation + position * by->key_width, by->heads + by->key_heads, by->key_width);
}

// What a row attends to: `count` tokens, whose keys and values are `stride` numbers apart, or at the places `seen`.
typedef struct {
    const float *keys, *values;
    int64_t stride;
    const int32_t *seen;
    int64_t count;
} memory;

static inline int64_t place_of(memory of, int64_t index) { return (of.seen ? of.seen[index] : index) * of.stride; }

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
static void attend_row(const model *by, const float *queries, memory to, float *weights, float *attended) {
    float scale = 1 / __builtin_sqrtf(by->key_width);
    for (int64_t head = 0; head < by->heads; head++) {
        int64_t key_head = head / (by->heads / by->key_heads);
        const float *query = queries + head * by->key_width;
        const float *keys = to.keys + key_head * by->key_width, *values = to.values + key_head * by->value_width;
        for (int64_t index = 0; index < to.count; index++) {
            const float *key = keys + place_of(to, index);
            floats products = {0};
            for (int64_t place = 0; place < by->key_width; place += LANES)
                products += load_floats(query + place) * load_floats(key + place);
            weights[index] = sum_of(products) * scale;
        }
        float total = exponentials(weights, to.count);
        for (int64_t place = 0; place < by->value_width; place += LANES, attended += LANES) {
            floats sums = {0};
            for (int64_t index = 0; index < to.count; index++)
                sums += weights[index] * load_floats(values + place_of(to, index) + place);
            store_floats(attended, sums / total);
        }
    }
}

static inline memory memory_of(const model *by, const float *heads, int64_t stride, int64_t count) {
    return (memory){.keys = heads, .values = heads + by->key_heads * by->key_width, .stride = stride, .count = count};
}

// Store the keys and values of the rows of a step in their slots, and attend from each row to its tokens so far.
static void attend_self_part(void *task, int64_t first, int64_t last, int64_t thread) {
    const part_of_call *part = task;
    const batch *it = part->it;
    const model *by = it->by;
    int64_t numbers = key_value_numbers(by);
    for (int64_t row = first; row < last; row++) {
        float *queries = it->projected + row * projected_numbers(by);
        const int32_t *path = it->paths + row * it->longest;
        rotate_row(by, queries, it->length);
        memcpy(part->to + path[it->length] * numbers, queries + by->heads * by->key_width, numbers * sizeof(float));
        memory to = memory_of(by, part->to, numbers, it->length + 1);
        to.seen = path;
        attend_row(by, queries, to, it->weights + thread * it->weight_room,
                   it->attended + row * by->heads * by->value_width);
    }
}

static void attend_source_part(void *task, int64_t first, int64_t last, int64_t thread) {
    const part_of_call *part = task;
    const batch *it = part->it;
    const model *by = it->by;
    int64_t numbers = key_value_numbers(by);
    for (int64_t row = first; row < last; row++) {
        const int64_t *begin = it->offsets + it->source_of_row[row];
        memory to = memory_of(by, part->from + begin[0] * numbers, numbers, begin[1] - begin[0]);
        attend_row(by, it->projected + row * by->heads * by->key_width, to, it->weights + thread * it->weight_room,
                   it->attended + row * by->heads * by->value_width);
    }
}

static void rotate_tokens_part(void *task, int64_t first, int64_t last, int64_t thread) {
    const batch *it = ((const part_of_call *)task)->it;
    (void)thread;
    for (int64_t row = first; row < last; row++)
        rotate_row(it->by, it->projected + row * projected_numbers(it->by),
                   row - it->offsets[it->source_of_row[row]]);
}

// Attend within the sources, whose tokens are the rows.
static void attend_within_part(void *task, int64_t first, int64_t last, int64_t thread) {
    const batch *it = ((const part_of_call *)task)->it;
    const model *by = it->by;
    int64_t numbers = projected_numbers(by);
    for (int64_t row = first; row < last; row++) {
        const int64_t *begin = it->offsets + it->source_of_row[row];
        const float *heads = it->projected + begin[0] * numbers + by->heads * by->key_width;
        attend_row(by, it->projected + row * numbers, memory_of(by, heads, numbers, begin[1] - begin[0]),
                   it->weights + thread * it->weight_room, it->attended + row * by->heads * by->value_width);
    }
}

static int64_t attention_work(const batch *it, int64_t keys) {
    return it->rows * it->by->heads * (it->by->key_width + it->by->value_width) * keys * 4;
}

// Return what a sub-layer reads.
static const float *input_of(const batch *it, const norm *by) {
    if (!it->by->norms_first) return it->stream;
    normalise(it, by, it->normed);
    return it->normed;
}

// Add the last product of a sub-layer to the stream.
static void add_output(const batch *it, const norm *by, const matrix *output, const float *rows) {
    multiply(output, rows, it->rows, it->stream, ADD, it->scratch);
    if (!it->by->norms_first) normalise(it, by, it->stream);
}

static inline float activated(int32_t activation, float x) {
    if (activation == RELU) return x > 0 ? x : 0 * x;
    if (activation == GELU) return x * 0.5f * (1 + erff(x * 0.70710678f));
    return x / (1 + expf(-x));
}

static void activate_part(void *task, int64_t first, int64_t last, int64_t thread) {
    const batch *it = ((const part_of_call *)task)->it;
    const model *by = it->by;
    int64_t width = by->inner_width;
    (void)thread;
    for (int64_t row = first; row < last; row++) {
        const float *from = it->projected + row * (by->gated ? 2 : 1) * width;
        float *to = it->hidden + row * width;
        for (int64_t place = 0; place < width; place++) {
            float x = activated(by->activation, from[place]);
            to[place] = by->gated ? x * from[width + place] : x;
        }
    }
}

static void feed_forward(const batch *it, const layer *by) {
    int is_relu = it->by->activation == RELU && !it->by->gated;
    part_of_call part = {.it = it};
    multiply(&by->inner, input_of(it, by->norms + 1), it->rows, it->projected, is_relu ? RECTIFY : STORE, it->scratch);
    if (!is_relu) share(activate_part, &part, it->rows, it->rows * it->by->inner_width * 32);
    add_output(it, by->norms + 1, &by->outer, is_relu ? it->projected : it->hidden);
}

static void embed_part(void *task, int64_t first, int64_t last, int64_t thread) {
    const part_of_call *part = task;
    const batch *it = part->it;
    int64_t width = it->by->width;
    (void)thread;
    for (int64_t row = first; row < last; row++) {
        int64_t position = it->parents ? it->length : row - it->offsets[it->source_of_row[row]];
        const float *vector = part->vectors + it->tokens[row] * width, *added = part->positions + position * width;
        for (int64_t place = 0; place < width; place += LANES) {
            floats numbers = load_floats(vector + place) * it->by->scale;
            store_floats(it->stream + row * width + place,
                         part->positions ? numbers + load_floats(added + place) : numbers);
        }
    }
}

// Read the sources, whose tokens are the rows of this call.
void read_sources(batch *it) {
    const model *by = it->by;
    part_of_call part = {.it = it, .vectors = by->source_words, .positions = by->source_positions};
    int64_t longest = 0;
    use_pool(it->threads);
    for (int64_t source = 0; source < it->sources; source++) {
        int64_t length = it->offsets[source + 1] - it->offsets[source];
        longest = length > longest ? length : longest;
        for (int64_t row = it->offsets[source]; row < it->offsets[source + 1]; row++)
            it->source_of_row[row] = (int32_t)source;
    }
    share(embed_part, &part, it->rows, it->rows * by->width);
    for (const layer *layer = by->encoder; layer < by->encoder + by->encoder_depth; layer++) {
        multiply(&layer->query_key_value, input_of(it, layer->norms), it->rows, it->projected, STORE, it->scratch);
        if (by->rotation) share(rotate_tokens_part, &part, it->rows, it->rows * by->width * 4);
        share(attend_within_part, &part, it->rows, attention_work(it, longest));
        add_output(it, layer->norms, &layer->output, it->attended);
        feed_forward(it, layer);
    }
    const float *read = input_of(it, &by->encoder_norm);
    float *heads = it->source_heads;
    for (const layer *layer = by->decoder; layer < by->decoder + by->decoder_depth; layer++) {
        multiply(&layer->source_key_value, read, it->rows, heads, STORE, it->scratch);
        heads += it->rows * key_value_numbers(by);
    }
}

// Find the slots that no row needs, the first of which are taken first.
void collect(batch *it) {
    memset(it->marks, 0, it->slots);
    for (int64_t row = 0; row < it->rows; row++)
        for (int64_t place = 0; place < it->length; place++) it->marks[it->paths[row * it->longest + place]] = 1;
    it->unused_count = 0;
    for (int64_t slot = it->slots - 1; slot >= 0; slot--)
        if (!it->marks[slot]) it->unused[it->unused_count++] = (int32_t)slot;
}

#define EXCHANGE(type, a, b) { type *before = a; a = b; b = before; }

// Let each row continue a row of the step before, with a slot of its own for the new token.
static void continue_rows(batch *it) {
    for (int64_t row = 0; row < it->rows; row++) {
        int64_t parent = it->parents[row];
        int32_t *path = it->next_paths + row * it->longest;
        memcpy(path, it->paths + parent * it->longest, it->length * sizeof *path);
        path[it->length] = it->unused[--it->unused_count];
        it->next_source_of_row[row] = it->source_of_row[parent];
    }
    EXCHANGE(int32_t, it->paths, it->next_paths)
    EXCHANGE(int32_t, it->source_of_row, it->next_source_of_row)
}

// Add a token to each of `rows` rows, for which there must be unused slots; return what the projection reads.
const float *add_tokens(batch *it, int64_t rows) {
    const model *by = it->by;
    part_of_call part = {.it = it, .vectors = by->target_words, .positions = by->target_positions};
    int64_t numbers = key_value_numbers(by), tokens = it->offsets[it->sources];
    use_pool(it->threads);
    it->rows = rows;
    continue_rows(it);
    share(embed_part, &part, rows, rows * by->width);
    for (int64_t index = 0; index < by->decoder_depth; index++) {
        const layer *layer = by->decoder + index;
        part.to = it->heads + index * it->slots * numbers;
        part.from = it->source_heads + index * tokens * numbers;
        multiply(&layer->query_key_value, input_of(it, layer->norms), rows, it->projected, STORE, it->scratch);
        share(attend_self_part, &part, rows, attention_work(it, it->length + 1));
        add_output(it, layer->norms, &layer->output, it->attended);
        multiply(&layer->query, input_of(it, layer->norms + 2), rows, it->projected, STORE, it->scratch);
        share(attend_source_part, &part, rows, attention_work(it, 1 + tokens / it->sources));
        add_output(it, layer->norms + 2, &layer->source_output, it->attended);
        feed_forward(it, layer);
    }
    it->length++;
    return input_of(it, &by->decoder_norm);
}

// Add a token to each row, and write the scores of all words that may follow, (rows, words).
void score_step(batch *it, int64_t rows, float *scores) {
    multiply(&it->by->projection, add_tokens(it, rows), rows, scores, STORE, it->scratch);
}
