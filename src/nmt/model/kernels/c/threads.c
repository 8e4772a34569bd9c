// Work divided between the threads that PyTorch's own operations use.

#include "threads.h"

#include <stddef.h>

static void (*run_in_parallel)(void (*)(void *), void *, unsigned, unsigned);
static int (*thread_number)(void), (*thread_count)(void), (*most_threads)(void);

// Take the functions GOMP_parallel, omp_get_thread_num, omp_get_num_threads and omp_get_max_threads of the process.
void use_threads(void *parallel, void *number, void *count, void *most) {
    run_in_parallel = (void (*)(void (*)(void *), void *, unsigned, unsigned))parallel;
    thread_number = (int (*)(void))number;
    thread_count = (int (*)(void))count;
    most_threads = (int (*)(void))most;
}

int64_t available_threads(void) { return run_in_parallel ? most_threads() : 1; }

typedef struct {
    work *part;
    void *task;
    int64_t count;
} division;

static void do_share(void *data) {
    division *it = data;
    int64_t thread = thread_number(), threads = thread_count();
    it->part(it->task, it->count * thread / threads, it->count * (thread + 1) / threads, thread);
}

void divide(work *part, void *task, int64_t count, int64_t few) {
    int64_t threads = available_threads();
    if (threads > count) threads = count;
    if (threads <= 1 || count < few) {
        part(task, 0, count, 0);
    } else {
        division it = {part, task, count};
        run_in_parallel(do_share, &it, (unsigned)threads, 0);
    }
}
