// Work shared between the threads that translate.
//
// PyTorch's threads wait actively for each other, so a machine with other work to do loses whole slices of time. Here a
// thread that is late finds nothing left to do, and no thread waits actively for longer than some microseconds.

#pragma once

#include <stdint.h>

// Do a part of a task: the items from `first` until before `last`, as the thread of this number.
typedef void work(void *task, int64_t first, int64_t last, int64_t thread);

// Let the calling thread share its work between this many threads from now on, itself included.
void use_pool(int64_t threads);

// The number of threads that `share` uses at most.
int64_t pool_threads(void);

// Share `count` items between threads, given the multiplications of all of them: few are not worth a second thread.
void share(work *part, void *task, int64_t count, int64_t multiplications);
