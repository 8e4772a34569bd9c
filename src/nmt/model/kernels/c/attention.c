// Attention within the sentences of packed streams, with the sentences divided between threads; attention.py calls it.
//
// One head of one sentence at a time is read to float32 and computed while it is in the cache.

#include "threads.h"
#include "vectors.h"

// Heads of a stream of queries, keys or values, or of their gradient: `width` numbers each, a multiple of LANES.
typedef struct {
    number *numbers;
    int64_t token_stride;
    int64_t width;
} stream;

// Sentence b is the tokens from query_offsets[b] and from key_offsets[b] on.
typedef struct {
    stream queries, keys, values;
    const int32_t *query_offsets, *key_offsets;
    int64_t sentences, heads, heads_per_key;
    int32_t causal;
    float scale;  // of the scores
} attention;

// The tokens of a sentence, from the first one on.
typedef struct {
    int64_t first, count;
} span;

static inline span sentence_of(const int32_t *offsets, int64_t sentence) {
    return (span){offsets[sentence], offsets[sentence + 1] - offsets[sentence]};
}

static inline int64_t blocks_of(int64_t count) { return (count + LANES - 1) / LANES; }

// Copy a head of a sentence to a matrix in float32, or back.
static void read_head(floats *matrix, stream from, span tokens, int64_t head) {
    for (int64_t token = 0; token < tokens.count; token++)
        for (int64_t place = 0; place < from.width; place += LANES)
            *matrix++ = load(from.numbers + (tokens.first + token) * from.token_stride + head * from.width + place);
}

static void write_head(stream to, span tokens, int64_t head, const floats *matrix) {
    for (int64_t token = 0; token < tokens.count; token++)
        for (int64_t place = 0; place < to.width; place += LANES)
            store(to.numbers + (tokens.first + token) * to.token_stride + head * to.width + place, *matrix++);
}

// Exchange rows and columns of LANES x LANES numbers.
static inline void exchange(floats square[LANES]) {
#define NEAR(lane, distance) ((lane) & (distance) ? LANES + (lane) - (distance) : (lane))
#define FAR(lane, distance) ((lane) & (distance) ? LANES + (lane) : (lane) + (distance))
#define STAGE(distance)                                                \
    for (int row = 0; row < LANES; row++) {                            \
        if (row & (distance)) continue;                                \
        floats first = square[row], second = square[row + (distance)]; \
        square[row] = chosen(first, second, EACH_LANE(NEAR, distance)); \
        square[row + (distance)] = chosen(first, second, EACH_LANE(FAR, distance)); \
    }
#if defined(__AVX512F__)
    STAGE(8)
#endif
#if defined(__AVX__)
    STAGE(4)
#endif
    STAGE(2)
    STAGE(1)
#undef STAGE
}

// Transpose a matrix of `rows` times `width`; the new rows are filled up to a multiple of LANES with zeros.
static void transpose(floats *transposed, const floats *matrix, int64_t rows, int64_t width) {
    int64_t blocks = blocks_of(rows), places = width / LANES;
    for (int64_t block = 0; block < blocks; block++)
        for (int64_t place = 0; place < places; place++) {
            floats square[LANES];
            for (int64_t lane = 0; lane < LANES; lane++) {
                int64_t row = block * LANES + lane;
                square[lane] = row < rows ? matrix[row * places + place] : (floats){0};
            }
            exchange(square);
            for (int64_t lane = 0; lane < LANES; lane++)
                transposed[(place * LANES + lane) * blocks + block] = square[lane];
        }
}

// The left factor of a product: the number in row r and column c is numbers[r * row_stride + c * column_stride].
typedef struct {
    const float *numbers;
    int64_t row_stride, column_stride;
} factor;

// The matrices of a product: those of `right` and `result` have `blocks` blocks per row.
typedef struct {
    floats *result;
    factor left;
    const floats *right;
    int64_t rows, inner, blocks;
    int add;  // to what the result contains
} product;

// Compute a tile of a product, whose sums stay in registers: the numbers of rows and blocks must be constants.
static inline __attribute__((always_inline)) void multiply_tile(product it, int64_t row, int64_t block,
                                                                const int tile_rows, const int tile_blocks) {
    const float *numbers[8];
    floats sums[8][4];
    for (int each = 0; each < tile_rows; each++) {
        int64_t last = it.rows - 1, taken = row + each < last ? row + each : last;  // too many rows repeat the last one
        numbers[each] = it.left.numbers + taken * it.left.row_stride;
        for (int at = 0; at < tile_blocks; at++) sums[each][at] = (floats){0};
    }
    for (int64_t column = 0; column < it.inner; column++)
        for (int at = 0; at < tile_blocks; at++) {
            floats right = it.right[column * it.blocks + block + at];
            for (int each = 0; each < tile_rows; each++)
                sums[each][at] += numbers[each][column * it.left.column_stride] * right;
        }
    for (int each = 0; each < tile_rows && row + each < it.rows; each++)
        for (int at = 0; at < tile_blocks; at++) {
            floats *to = it.result + (row + each) * it.blocks + block + at;
            *to = it.add ? *to + sums[each][at] : sums[each][at];
        }
}

// Rows and blocks of the tiles, so that their sums fill the processor's registers.
static void multiply(product it) {
    int64_t block = 0;
#if defined(__AVX512F__)
    for (; block + 4 <= it.blocks; block += 4)
        for (int64_t row = 0; row < it.rows; row += 4) multiply_tile(it, row, block, 4, 4);
    for (; block + 2 <= it.blocks; block += 2)
        for (int64_t row = 0; row < it.rows; row += 8) multiply_tile(it, row, block, 8, 2);
#elif defined(__AVX__)
    for (; block + 2 <= it.blocks; block += 2)
        for (int64_t row = 0; row < it.rows; row += 6) multiply_tile(it, row, block, 6, 2);
#else
    for (; block + 4 <= it.blocks; block += 4)
        for (int64_t row = 0; row < it.rows; row += 4) multiply_tile(it, row, block, 4, 4);
#endif
    for (; block < it.blocks; block++)
        for (int64_t row = 0; row < it.rows; row += 8) multiply_tile(it, row, block, 8, 1);
}

// Softmax of the first `visible` scores times `scale`; the others become 0.
static inline void softmax(floats *scores, int64_t visible, int64_t blocks, float scale) {
    const floats lowest = (floats){0} - __builtin_inff();
    floats top = lowest, total = {0};
    for (int64_t block = 0; block < blocks; block++) {
        ints seen = below(visible, block);
        top = larger((floats)((seen & (ints)scores[block]) | (~seen & (ints)lowest)), top);
    }
    float largest = largest_of(top);
    for (int64_t block = 0; block < blocks; block++) {
        scores[block] = (floats)(below(visible, block) & (ints)exponential((scores[block] - largest) * scale));
        total += scores[block];
    }
    float normaliser = 1 / sum_of(total);
    for (int64_t block = 0; block < blocks; block++) scores[block] *= normaliser;
}

// softmax(Q K^T / sqrt(width)), one row of blocks of keys per query.
static void attention_weights(const attention *plan, floats *weights, const floats *queries, const floats *keys_by_place,
                              int64_t query_count, int64_t key_count) {
    int64_t width = plan->queries.width, blocks = blocks_of(key_count);
    multiply((product){weights, {(const float *)queries, width, 1}, keys_by_place, query_count, width, blocks, 0});
    for (int64_t query = 0; query < query_count; query++) {
        int64_t visible = plan->causal && query < key_count ? query + 1 : key_count;
        softmax(weights + query * blocks, visible, blocks, plan->scale);
    }
}

// What threads share: they take one sentence after the other.
typedef struct {
    const attention *plan;
    number *attended, *gradient;
    stream to_queries, to_keys, to_values;
    floats *scratch;
    int64_t scratch_blocks;  // per thread
    int64_t next;
} attention_task;

static inline int64_t next_sentence(attention_task *it) { return __atomic_fetch_add(&it->next, 1, __ATOMIC_RELAXED); }

static void attend_sentence(const attention *plan, int64_t sentence, stream result, floats *scratch) {
    int64_t d_k = plan->queries.width, d_v = plan->values.width;
    span from = sentence_of(plan->query_offsets, sentence), to = sentence_of(plan->key_offsets, sentence);
    int64_t blocks = blocks_of(to.count);
    floats *queries = scratch, *mixed = queries + from.count * d_k / LANES;
    floats *weights = mixed + from.count * d_v / LANES, *keys = weights + from.count * blocks;
    floats *values = keys + to.count * d_k / LANES, *keys_by_place = values + to.count * d_v / LANES;
    for (int64_t head = 0; head < plan->heads; head++) {
        if (head % plan->heads_per_key == 0) {
            read_head(keys, plan->keys, to, head / plan->heads_per_key);
            read_head(values, plan->values, to, head / plan->heads_per_key);
            transpose(keys_by_place, keys, to.count, d_k);
        }
        read_head(queries, plan->queries, from, head);
        attention_weights(plan, weights, queries, keys_by_place, from.count, to.count);
        factor left = {(const float *)weights, blocks * LANES, 1};
        multiply((product){mixed, left, values, from.count, to.count, d_v / LANES, 0});
        write_head(result, from, head, mixed);
    }
}

static void attend_part(void *task, int64_t first, int64_t last, int64_t thread) {
    attention_task *it = task;
    const attention *plan = it->plan;
    stream result = {it->attended, plan->heads * plan->values.width, plan->values.width};
    (void)first, (void)last;
    for (int64_t sentence; (sentence = next_sentence(it)) < plan->sentences;)
        attend_sentence(plan, sentence, result, it->scratch + thread * it->scratch_blocks);
}

// Attend within each sentence and head. `scratch` has room for the matrices of the longest sentence per thread.
void attend(const attention *plan, number *attended, floats *scratch, int64_t scratch_numbers) {
    attention_task task = {.plan = plan, .attended = attended, .scratch = scratch,
                           .scratch_blocks = scratch_numbers / LANES};
    divide(attend_part, &task, plan->sentences, 2);
}

// Turn the gradient of weights, one row per query, into that of the products of queries and keys.
static void softmax_backward(floats *gradient, const floats *weights, int64_t rows, int64_t blocks, float scale) {
    for (int64_t row = 0; row < rows; row++, gradient += blocks, weights += blocks) {
        floats along = {0};
        for (int64_t block = 0; block < blocks; block++) along += weights[block] * gradient[block];
        float mean = sum_of(along);
        for (int64_t block = 0; block < blocks; block++)
            gradient[block] = weights[block] * (gradient[block] - mean) * scale;
    }
}

static void attend_sentence_backward(const attention_task *it, int64_t sentence, stream incoming, floats *scratch) {
    const attention *plan = it->plan;
    int64_t d_k = plan->queries.width, d_v = plan->values.width, k_blocks = d_k / LANES, v_blocks = d_v / LANES;
    span from = sentence_of(plan->query_offsets, sentence), to = sentence_of(plan->key_offsets, sentence);
    int64_t blocks = blocks_of(to.count), stride = blocks * LANES;
    floats *queries = scratch, *upstream = queries + from.count * k_blocks;
    floats *grad_queries = upstream + from.count * v_blocks, *weights = grad_queries + from.count * k_blocks;
    floats *scores = weights + from.count * blocks, *keys = scores + from.count * blocks;
    floats *values = keys + to.count * k_blocks, *keys_by_place = values + to.count * v_blocks;
    floats *values_by_place = keys_by_place + blocks * d_k, *grad_keys = values_by_place + blocks * d_v;
    floats *grad_values = grad_keys + to.count * k_blocks;
    for (int64_t head = 0; head < plan->heads; head++) {
        int64_t key_head = head / plan->heads_per_key, add = head % plan->heads_per_key != 0;
        if (!add) {
            read_head(keys, plan->keys, to, key_head);
            read_head(values, plan->values, to, key_head);
            transpose(keys_by_place, keys, to.count, d_k);
            transpose(values_by_place, values, to.count, d_v);
        }
        read_head(queries, plan->queries, from, head);
        read_head(upstream, incoming, from, head);
        attention_weights(plan, weights, queries, keys_by_place, from.count, to.count);
        factor rows = {(const float *)upstream, d_v, 1};
        multiply((product){scores, rows, values_by_place, from.count, d_v, blocks, 0});
        softmax_backward(scores, weights, from.count, blocks, plan->scale);
        factor by_query = {(const float *)scores, stride, 1}, by_key = {(const float *)scores, 1, stride};
        factor weights_by_key = {(const float *)weights, 1, stride};
        multiply((product){grad_queries, by_query, keys, from.count, to.count, k_blocks, 0});
        multiply((product){grad_keys, by_key, queries, to.count, from.count, k_blocks, add});
        multiply((product){grad_values, weights_by_key, upstream, to.count, from.count, v_blocks, add});
        write_head(it->to_queries, from, head, grad_queries);
        write_head(it->to_keys, to, key_head, grad_keys);  // the last head that shares it writes the sum
        write_head(it->to_values, to, key_head, grad_values);
    }
}

static void attend_backward_part(void *task, int64_t first, int64_t last, int64_t thread) {
    attention_task *it = task;
    stream incoming = {it->gradient, it->plan->heads * it->plan->values.width, it->plan->values.width};
    (void)first, (void)last;
    for (int64_t sentence; (sentence = next_sentence(it)) < it->plan->sentences;)
        attend_sentence_backward(it, sentence, incoming, it->scratch + thread * it->scratch_blocks);
}

// The gradients of queries, keys and values, given that of the result.
void attend_backward(const attention *plan, number *gradient, stream to_queries, stream to_keys, stream to_values,
                     floats *scratch, int64_t scratch_numbers) {
    attention_task task = {.plan = plan, .gradient = gradient, .to_queries = to_queries, .to_keys = to_keys,
                           .to_values = to_values, .scratch = scratch, .scratch_blocks = scratch_numbers / LANES};
    divide(attend_backward_part, &task, plan->sentences, 2);
}
