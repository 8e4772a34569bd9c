// A Transformer and a batch of sentences that it translates, as translator.py and translator_batch.py lay them out.

#pragma once

#include <stdint.h>

#include "products.h"

typedef struct {
    const float *gain, *bias;  // RMSNorm has no bias
    float eps;
} norm;

typedef struct {
    norm norms[3];  // of self-attention, feed-forward and cross-attention
    matrix query_key_value, output, inner, outer, query, source_output, source_key_value;
} layer;

enum { RELU, GELU, SWISH };

// The widths of the stream and of heads are multiples of LANES.
typedef struct {
    const layer *encoder, *decoder;
    int64_t encoder_depth, decoder_depth, width, heads, key_heads, key_width, value_width, inner_width;
    int32_t norms_first, activation, gated;
    norm encoder_norm, decoder_norm;  // after all layers, if norms come first
    const float *source_words, *target_words;  // vectors, (words, width)
    float scale;                               // of the vectors
    const float *source_positions, *target_positions;  // added to the vectors, (longest, width), or 0
    const float *rotation;  // sinusoids that rotate queries and keys, (longest, key_width), or 0
    matrix projection;
} model;

typedef struct {
    const model *by;
    int64_t threads;
    // the sources: sentence s is the tokens from offsets[s] until before offsets[s + 1]
    int64_t sources;
    const int64_t *offsets;
    float *source_heads;  // the keys and values of each decoder layer and token, (decoder_depth, tokens, ...)
    // the cache: a slot has the keys and values of a token of a hypothesis, (decoder_depth, slots, ...)
    float *heads;
    int64_t slots;
    int32_t *unused;  // slots that no row needs, the last of which is taken first
    int64_t unused_count;
    uint8_t *marks;  // of the slots, for `collect`
    // the rows: their sources, and the slots of their tokens, (rows, longest); the next ones are written from the last ones
    int64_t rows, length, longest;
    int32_t *source_of_row, *next_source_of_row, *paths, *next_paths;
    const int64_t *tokens, *parents;  // what the rows of a step add, and the rows that they continue
    // room for the rows of a call
    float *stream, *normed, *projected, *attended, *hidden, *scores, *weights;
    int64_t weight_room;  // numbers of `weights` for each thread
    void *scratch;
} batch;

// Add a token to each of `rows` rows, for which there must be unused slots; return what the projection reads.
const float *add_tokens(batch *it, int64_t rows);
