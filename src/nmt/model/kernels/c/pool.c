// The threads of pool.h.

#include "pool.h"

#include <pthread.h>

#if defined(__x86_64__)
#define relax() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define relax() __asm__ volatile("yield")
#else
#define relax() (void)0
#endif

// Fewer multiplications than this, about 25 microseconds, are not worth a thread; tests define a smaller number.
#ifndef FEW
#define FEW (1 << 20)
#endif

enum {
    MAX_THREADS = 64,
    SPINS = 400,     // about ten microseconds of waiting actively
    PIECES = 4,      // of the work of each thread, so that a thread that is late leaves its pieces to the others
};

static struct {
    pthread_mutex_t users, mutex;  // the first is held while a call shares its work
    pthread_cond_t begins, ends;
    int64_t helpers, sleeping, waiting;
    int64_t job, open, active;  // the number of the last job, whether it still has work, and the helpers in it
    work *part;
    void *task;
    int64_t count, piece, next, wanted;
} pool = {.users = PTHREAD_MUTEX_INITIALIZER, .mutex = PTHREAD_MUTEX_INITIALIZER, .begins = PTHREAD_COND_INITIALIZER,
          .ends = PTHREAD_COND_INITIALIZER};

static __thread int64_t threads_of_caller = 1;

#define get(place) __atomic_load_n(&(place), __ATOMIC_SEQ_CST)
#define set(place, value) __atomic_store_n(&(place), value, __ATOMIC_SEQ_CST)
#define add(place, value) __atomic_add_fetch(&(place), value, __ATOMIC_SEQ_CST)

void use_pool(int64_t threads) { threads_of_caller = threads > MAX_THREADS ? MAX_THREADS : threads; }

int64_t pool_threads(void) { return threads_of_caller; }

static void do_pieces(int64_t thread) {
    for (int64_t last; (last = add(pool.next, pool.piece)) - pool.piece < pool.count;)
        pool.part(pool.task, last - pool.piece, last < pool.count ? last : pool.count, thread);
}

// Wait until the value at a place differs from `old`: actively for a moment, then asleep.
static void wait_for_change(int64_t *place, int64_t old, int64_t *sleepers, pthread_cond_t *changed) {
    for (int spin = 0; spin < SPINS; spin++) {
        if (__atomic_load_n(place, __ATOMIC_SEQ_CST) != old) return;
        relax();
    }
    pthread_mutex_lock(&pool.mutex);
    __atomic_add_fetch(sleepers, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(place, __ATOMIC_SEQ_CST) == old) pthread_cond_wait(changed, &pool.mutex);
    __atomic_add_fetch(sleepers, -1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&pool.mutex);
}

static void wake(int64_t *sleepers, pthread_cond_t *changed) {
    if (__atomic_load_n(sleepers, __ATOMIC_SEQ_CST) == 0) return;
    pthread_mutex_lock(&pool.mutex);
    pthread_cond_broadcast(changed);
    pthread_mutex_unlock(&pool.mutex);
}

static void *help(void *number) {
    int64_t thread = (int64_t)number, seen = 0;
    for (;;) {
        wait_for_change(&pool.job, seen, &pool.sleeping, &pool.begins);
        seen = get(pool.job);
        add(pool.active, 1);  // from now on the job that is open, if any, waits for this thread
        if (get(pool.open) && thread < get(pool.wanted)) do_pieces(thread);
        if (add(pool.active, -1) == 0) wake(&pool.waiting, &pool.ends);
    }
    return 0;
}

// A copy of the process has none of the threads.
static void begin_anew(void) {
    pool.helpers = pool.sleeping = pool.waiting = pool.open = pool.active = pool.job = 0;
    pthread_mutex_init(&pool.users, 0);
    pthread_mutex_init(&pool.mutex, 0);
    pthread_cond_init(&pool.begins, 0);
    pthread_cond_init(&pool.ends, 0);
}

static void start_helpers(int64_t wanted) {
    static int forks;
    if (!forks) forks = pthread_atfork(0, 0, begin_anew) == 0;
    while (pool.helpers + 1 < wanted) {
        pthread_t thread;
        if (pthread_create(&thread, 0, help, (void *)(pool.helpers + 1))) return;
        pthread_detach(thread);
        pool.helpers++;
    }
}

void share(work *part, void *task, int64_t count, int64_t multiplications) {
    int64_t threads = threads_of_caller, worth = 1 + multiplications / FEW;
    if (threads > worth) threads = worth;
    if (threads > count) threads = count;
    if (threads <= 1 || pthread_mutex_trylock(&pool.users)) {
        part(task, 0, count, 0);
        return;
    }
    start_helpers(threads);
    pool.part = part;
    pool.task = task;
    pool.count = count;
    pool.piece = (count + PIECES * threads - 1) / (PIECES * threads);
    pool.wanted = threads;
    set(pool.next, 0);
    set(pool.open, 1);
    add(pool.job, 1);
    wake(&pool.sleeping, &pool.begins);
    do_pieces(0);
    set(pool.open, 0);
    for (int64_t active; (active = get(pool.active));) wait_for_change(&pool.active, active, &pool.waiting, &pool.ends);
    pthread_mutex_unlock(&pool.users);
}
