// Work divided between the threads that PyTorch's own operations use.
//
// A second pool of threads would compete with PyTorch's, which wait actively. So threads.c gets the functions of the
// OpenMP library that PyTorch has loaded, and any C compiler can be used.

#pragma once

#include <stdint.h>

// Do a part of a task: the items from `first` until before `last`, as the thread of this number.
typedef void work(void *task, int64_t first, int64_t last, int64_t thread);

// The number of threads that share an operation of the calling thread.
int64_t available_threads(void);

// Divide `count` items between the threads, in equal parts; one thread does all if they are fewer than `few`.
void divide(work *part, void *task, int64_t count, int64_t few);
