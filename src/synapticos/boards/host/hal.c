/* The host as a board, natively: up to HOST_BOARDS of them in a process, told apart by number.

   Time is virtual and moves when the host moves it, or is the machine's own in microseconds. The console goes into a
   buffer that the host takes. A critical section is a spin lock, since any thread may call in. */
#include "../hal.h"
#include "../counting.h"
#include "../virtual.h"
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#ifdef __linux__
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif
#endif

enum { PANICKED = 1, EXITED = 2 }; /* how a call was left; FAULT_LATE is the third way */
enum { HOST_BOARDS = 64, CONSOLE = 1 << 16, TEXT = 1024, TICK_RATE = 1000000 };
enum { NAP = 20000, DOZE = 1000, PIECE = 50 }; /* us: how long a sleep may be, and its pieces where nobody can end it */
enum { PATIENCE = 1000 }; /* tries to get into a section before others are let run */

typedef struct {
    uint32_t used;
    uint32_t real; /* the machine's clock, not the virtual one */
    uint32_t ticks;
    uint32_t rate;
    uint32_t wakes; /* how many there were; goes on when the board is opened anew, and wraps */
    uint32_t sleepers; /* threads that sleep, or are about to */
    virtual_line lines[VIRTUAL_LINES];
    counting_npu npu;
    void *owner; /* of the critical section: something of its thread's, or null */
    uint32_t owes; /* it has woken others, who are told once it leaves: else they might only wait for it */
    uint32_t lock; /* of the console */
    uint32_t console_used;
    uint8_t console[CONSOLE];
    uint8_t argument[TEXT];
    uint32_t argument_bytes;
    char folder[TEXT]; /* where names of files begin; empty: where the process is */
} host_board;

static host_board boards[HOST_BOARDS];

/* What a thread knows of a board that it sleeps on. Each has its own, so one that wakes takes nothing from the others. */
typedef struct {
    uint32_t seen; /* of the board's `wakes` */
    uint32_t told; /* for which of the accelerator's works it was woken */
    uint32_t alarm; /* ticks at which its next idle ends */
    uint32_t alarmed;
} sleeper;

static __thread sleeper sleeps[HOST_BOARDS];

/* What the host calls ---------------------------------------------------------------------------------------------- */

int32_t host_open(void);
void host_close(uint32_t board);
void host_clock(uint32_t board, uint32_t real, uint32_t rate);
void host_set_ticks(uint32_t board, uint32_t ticks);
void host_interrupt(uint32_t board, uint32_t line, void (*handler)(void *), void *block);
void host_npu(uint32_t board, uint32_t lost, int32_t fails);
uint32_t host_take_console(uint32_t board, uint8_t *text, uint32_t n);
void host_set_argument(uint32_t board, const uint8_t *text, uint32_t n);
void host_set_folder(uint32_t board, const char *folder);
int32_t host_call(void (*function)(void *), void *block, uint32_t *told, uint32_t board);

/* A thread's way out of a call that cannot go on, and the board that it called for. */
typedef struct {
    void *jump[5];
    uint32_t *told;
    int32_t why;
    uint32_t board;
} way_out;

static __thread way_out *out;

/* Board 0 is whichever board the caller of host_call named: code that knows of one board only asks for 0. */
static host_board *get(uint32_t board) {
    if (board == 0 && out != NULL)
        board = out->board;
    return &boards[board % HOST_BOARDS];
}

/* Locks that this thread holds: it is not thrown out of its call meanwhile. */
static __thread volatile uint32_t holding;

static void lock(host_board *b) {
    holding++;
    while (__atomic_exchange_n(&b->lock, 1, __ATOMIC_ACQUIRE) != 0)
        ;
}

static void unlock(host_board *b) {
    __atomic_store_n(&b->lock, 0, __ATOMIC_RELEASE);
    holding--;
}

/* A free board, as after a reset; -1 if there is none. */
int32_t host_open(void) {
    for (uint32_t i = 0; i < HOST_BOARDS; i++) {
        if (__atomic_exchange_n(&boards[i].used, 1, __ATOMIC_ACQUIRE) != 0)
            continue;
        host_board *b = &boards[i];
        b->real = b->ticks = b->console_used = b->argument_bytes = 0;
        b->rate = TICK_RATE;
        b->owner = NULL;
        b->owes = 0;
        b->folder[0] = 0;
        memset(b->lines, 0, sizeof b->lines);
        b->npu.started = b->npu.lost = 0; /* `starts` goes on: sleepers may know it */
        b->npu.fails = 0;
        return (int32_t)i;
    }
    return -1;
}

void host_close(uint32_t board) {
    __atomic_store_n(&get(board)->used, 0, __ATOMIC_RELEASE);
}

void host_clock(uint32_t board, uint32_t real, uint32_t rate) {
    get(board)->real = real;
    get(board)->rate = real ? TICK_RATE : rate;
}

void host_set_ticks(uint32_t board, uint32_t ticks) {
    __atomic_store_n(&get(board)->ticks, ticks, __ATOMIC_RELEASE);
}

/* What interrupt `line` calls, with which argument, when `hal_interrupt_at` has asked for it; NULL: nothing any more. */
void host_interrupt(uint32_t board, uint32_t line, void (*handler)(void *), void *block) {
    virtual_line *l = &get(board)->lines[line % VIRTUAL_LINES];
    l->armed = 0;
    l->handler = handler;
    l->block = block;
}

/* How the accelerator's work ends from now on: never, or so. */
void host_npu(uint32_t board, uint32_t lost, int32_t fails) {
    get(board)->npu.lost = lost;
    get(board)->npu.fails = fails;
}

/* Move up to `n` bytes of text out of the console: how many. Call again while it gives `n`. */
uint32_t host_take_console(uint32_t board, uint8_t *text, uint32_t n) {
    host_board *b = get(board);
    lock(b);
    if (n > b->console_used)
        n = b->console_used;
    memcpy(text, b->console, n);
    memmove(b->console, b->console + n, b->console_used - n);
    b->console_used -= n;
    unlock(b);
    return n;
}

void host_set_argument(uint32_t board, const uint8_t *text, uint32_t n) {
    host_board *b = get(board);
    b->argument_bytes = n < TEXT ? n : TEXT;
    memcpy(b->argument, text, b->argument_bytes);
}

void host_set_folder(uint32_t board, const char *folder) {
    host_board *b = get(board);
    size_t n = strlen(folder);
    if (n < TEXT)
        memcpy(b->folder, folder, n + 1);
}

/* Call a function for a board that may panic or exit: 0 if it returned, 1 after a panic (told: file, line), 2 after an exit
   (told: code). What was on the stack is forgotten, so the state that it worked on is not to be used again. */
int32_t host_call(void (*function)(void *), void *block, uint32_t *told, uint32_t board) {
    way_out *before = out;
    way_out mine;
    mine.told = told;
    mine.why = 0;
    mine.board = board;
    out = &mine;
    if (__builtin_setjmp(mine.jump) == 0)
        function(block);
    int32_t why = out->why;
    out = before;
    return why;
}

static void leave(int32_t why, uint32_t first, uint32_t second) __attribute__((noreturn));
static void leave(int32_t why, uint32_t first, uint32_t second) {
    if (out == NULL)
        __builtin_trap(); /* called without host_call */
    out->why = why;
    out->told[0] = first;
    out->told[1] = second;
    __builtin_longjmp(out->jump, 1);
}

void syn_panic(uint32_t file, uint32_t line) {
    leave(PANICKED, file, line);
}

/* What the kernel calls -------------------------------------------------------------------------------------------- */

void hal_exit(uint32_t board, int32_t code) {
    (void)board;
    leave(EXITED, (uint32_t)code, 0);
}

uint32_t hal_ticks(uint32_t board) {
    host_board *b = get(board);
    if (!b->real)
        return __atomic_load_n(&b->ticks, __ATOMIC_ACQUIRE);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)((uint64_t)now.tv_sec * TICK_RATE + (uint64_t)now.tv_nsec / 1000);
}

uint32_t hal_tick_rate(uint32_t board) {
    return get(board)->rate;
}

/* Text beyond the buffer is lost: the host takes it between calls. */
void hal_console(uint32_t board, const uint8_t *text, uint32_t n) {
    host_board *b = get(board);
    lock(b);
    uint32_t room = CONSOLE - b->console_used;
    if (n > room)
        n = room;
    memcpy(b->console + b->console_used, text, n);
    b->console_used += n;
    unlock(b);
}

/* An address that is this thread's alone. */
static void *me(void) {
    static __thread uint8_t mine;
    return &mine;
}

/* Sections nest: the state says whether this thread had the lock already. */
uint32_t hal_critical_enter(uint32_t board) {
    host_board *b = get(board);
    if (__atomic_load_n(&b->owner, __ATOMIC_RELAXED) == me())
        return 1;
    for (uint32_t tries = 0;; tries++) {
        void *nobody = NULL;
        if (__atomic_compare_exchange_n(&b->owner, &nobody, me(), 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return 0;
        if (tries >= PATIENCE)
            sched_yield(); /* its thread is not running */
    }
}

static void rouse(host_board *b) {
#ifdef __linux__
    if (__atomic_load_n(&b->sleepers, __ATOMIC_SEQ_CST) != 0)
        syscall(SYS_futex, &b->wakes, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
#else
    (void)b;
#endif
}

void hal_critical_exit(uint32_t board, uint32_t state) {
    host_board *b = get(board);
    if (state != 0)
        return;
    const uint32_t owes = b->owes;
    b->owes = 0;
    __atomic_store_n(&b->owner, NULL, __ATOMIC_RELEASE);
    if (owes)
        rouse(b);
}

/* A sleeper counts itself before it compares `wakes` and sleeps, both in one as the system does it; so either it sees this
   wake, or this sees it. */
void hal_wake(uint32_t board) {
    host_board *b = get(board);
    __atomic_add_fetch(&b->wakes, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&b->owner, __ATOMIC_RELAXED) == me())
        b->owes = 1;
    else
        rouse(b);
}

void hal_wake_at(uint32_t board, uint32_t ticks) {
    sleeper *me = &sleeps[get(board) - boards];
    me->alarm = ticks;
    me->alarmed = 1;
}

/* Sleep for `us` microseconds at most, unless `wakes` is not `seen` any more; a signal ends it too. */
static void nap(host_board *b, uint32_t seen, int32_t us) {
#ifdef __linux__
    const struct timespec time = {0, us * 1000};
    holding++; /* so `sleepers` is counted down again */
    __atomic_add_fetch(&b->sleepers, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &b->wakes, FUTEX_WAIT_PRIVATE, seen, &time, NULL, 0);
    __atomic_sub_fetch(&b->sleepers, 1, __ATOMIC_SEQ_CST);
    holding--;
#else
    while (us > 0 && __atomic_load_n(&b->wakes, __ATOMIC_ACQUIRE) == seen) {
        const struct timespec time = {0, us < PIECE ? us * 1000 : PIECE * 1000};
        nanosleep(&time, NULL);
        us -= PIECE;
    }
#endif
}

/* With the machine's clock: sleep until a wake that this thread has not seen, the alarm or the end of the accelerator's
   work; with an alarm NAP at most, without one DOZE. Virtual time stands still. */
void hal_idle(uint32_t board) {
    host_board *b = get(board);
    sleeper *me = &sleeps[b - boards];
    const uint32_t seen = me->seen, alarmed = me->alarmed;
    me->alarmed = 0;
    if (b->real && __atomic_load_n(&b->wakes, __ATOMIC_ACQUIRE) == seen) {
        const uint32_t now = hal_ticks(board);
        int32_t left = DOZE;
        if (alarmed) {
            left = (int32_t)(me->alarm - now);
            left = left < NAP ? left : NAP;
        }
        const int32_t works = counting_left(&b->npu, now, &me->told);
        left = works < left ? works : left;
        if (left > 0)
            nap(b, seen, left);
    }
    me->seen = __atomic_load_n(&b->wakes, __ATOMIC_ACQUIRE);
}

/* With the machine's clock: the time is waited for, and no interrupts are made up. */
void hal_spend(uint32_t board, uint32_t ticks) {
    host_board *b = get(board);
    if (!b->real) {
        virtual_spend(&b->ticks, b->lines, ticks);
        return;
    }
    const struct timespec time = {ticks / TICK_RATE, (long)(ticks % TICK_RATE) * (1000000000 / TICK_RATE)};
    nanosleep(&time, NULL);
}

void hal_interrupt_at(uint32_t board, uint32_t line, uint32_t ticks) {
    virtual_at(get(board)->lines, line, ticks);
}

/* Guarded calls: what the program's own checks find ends them, and a timer of this thread's processor time. A
   processor's fault ends the process, as it does anywhere on the host. */
void hal_guard_open(uint32_t board, uint8_t *at, uint32_t n, bool write) {
    (void)board, (void)at, (void)n, (void)write;
}

#ifdef __linux__
static int32_t late_signal; /* this library's own; 0: not chosen yet, -1: none was free */
static __thread way_out *volatile watched; /* the guarded call whose time is measured */
static __thread int watch;

/* Sent to the thread that computes too long, wherever it is. The timer sends it again if this is no time to leave. */
static void late(int number, siginfo_t *info, void *context) {
    (void)number, (void)info, (void)context;
    if (watched == NULL || watched != out || holding != 0)
        return;
    watched = NULL;
    out->why = FAULT_LATE;
    __builtin_longjmp(out->jump, 1);
}

/* The first real-time signal that nobody handles becomes ours; it may come again while its handler is left by a jump. */
static int32_t choose_signal(void) {
    static uint32_t choosing;
    while (__atomic_exchange_n(&choosing, 1, __ATOMIC_ACQUIRE) != 0)
        ;
    struct sigaction found, mine;
    memset(&mine, 0, sizeof mine);
    mine.sa_sigaction = late;
    mine.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
    for (int32_t n = SIGRTMAX - 1; late_signal == 0 && n > SIGRTMIN; n--)
        if (sigaction(n, NULL, &found) == 0 && found.sa_handler == SIG_DFL && sigaction(n, &mine, NULL) == 0)
            late_signal = n;
    if (late_signal == 0)
        late_signal = -1;
    __atomic_store_n(&choosing, 0, __ATOMIC_RELEASE);
    return late_signal;
}

static void watch_begin(way_out *call, uint32_t limit_us, volatile bool *begun) {
    int32_t number = late_signal != 0 ? late_signal : choose_signal();
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = number;
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    if (number < 0 || syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &watch) != 0)
        return;
    struct itimerspec time = {{0, 1000000}, {(time_t)(limit_us / 1000000), (long)(limit_us % 1000000) * 1000}};
    *begun = true;
    watched = call;
    syscall(SYS_timer_settime, watch, 0, &time, NULL);
}

static void watch_end(void) {
    watched = NULL;
    syscall(SYS_timer_delete, watch);
}
#else
static void watch_begin(way_out *call, uint32_t limit_us, volatile bool *begun) {
    (void)call, (void)limit_us, (void)begun;
}

static void watch_end(void) {
}
#endif

uint32_t hal_guard_run(uint32_t board, void (*work)(uint8_t *), uint8_t *block, uint32_t n, uint32_t limit_us, uint32_t *fault) {
    (void)n;
    way_out *before = out;
    uint32_t told[2] = {0, 0};
    way_out mine;
    host_board *b = get(board);
    void *owner = __atomic_load_n(&b->owner, __ATOMIC_RELAXED);
    mine.told = told;
    mine.why = 0;
    mine.board = before != NULL ? before->board : board;
    out = &mine;
    volatile bool timed = false;
    if (__builtin_setjmp(mine.jump) == 0) {
        if (limit_us != 0)
            watch_begin(&mine, limit_us, &timed);
        work(block);
    }
    if (timed)
        watch_end();
    int32_t why = out->why;
    out = before;
    if (why == EXITED)
        leave(EXITED, told[0], 0);
    if (why == FAULT_NONE)
        return FAULT_NONE;
    if (__atomic_load_n(&b->owner, __ATOMIC_RELAXED) == me())
        __atomic_store_n(&b->owner, owner == me() ? owner : NULL, __ATOMIC_RELEASE);
    for (uint32_t i = 0; i < FAULT_WORDS; i++)
        fault[i] = 0;
    uint32_t kind = why == FAULT_LATE ? FAULT_LATE : FAULT_CHECK;
    fault[FAULT_KIND] = kind;
    fault[FAULT_FILE] = told[0];
    fault[FAULT_LINE] = told[1];
    return kind;
}

int32_t hal_npu_start(uint32_t board, uint32_t ticket, uint32_t ticks, const uint8_t *work, uint32_t n) {
    (void)work, (void)n;
    return counting_start(&get(board)->npu, hal_ticks(board), ticket, ticks);
}

int32_t hal_npu_status(uint32_t board, uint32_t ticket) {
    return counting_status(&get(board)->npu, hal_ticks(board), ticket);
}

void hal_npu_reset(uint32_t board) {
    get(board)->npu.started = 0;
}

bool hal_npu_counts(uint32_t board) {
    (void)board;
    return true;
}

uint32_t hal_argument(uint32_t board, uint8_t *buffer, uint32_t n) {
    const host_board *b = get(board);
    memcpy(buffer, b->argument, n < b->argument_bytes ? n : b->argument_bytes);
    return b->argument_bytes;
}

static FILE *open(const host_board *b, const uint8_t *name, const char *mode) {
    char path[2 * TEXT + 2];
    size_t at = strlen(b->folder);
    size_t n = strlen((const char *)name);
    if (n >= TEXT)
        return NULL;
    memcpy(path, b->folder, at);
    if (at > 0)
        path[at++] = '/';
    memcpy(path + at, name, n + 1);
    return fopen(path, mode);
}

int32_t hal_file_read(uint32_t board, const uint8_t *name, uint32_t at, uint8_t *data, uint32_t n) {
    FILE *file = open(get(board), name, "rb");
    if (file == NULL)
        return HAL_NOENT;
    int32_t moved = HAL_IO;
    if (fseek(file, (long)at, SEEK_SET) == 0) {
        size_t got = fread(data, 1, n, file);
        if (ferror(file) == 0)
            moved = (int32_t)got;
    }
    fclose(file);
    return moved;
}

int32_t hal_file_write(uint32_t board, const uint8_t *name, uint32_t at, const uint8_t *data, uint32_t n) {
    FILE *file = open(get(board), name, at == 0 ? "wb" : "r+b");
    if (file == NULL)
        return HAL_NOENT;
    int32_t moved = HAL_IO;
    if (fseek(file, (long)at, SEEK_SET) == 0 && fwrite(data, 1, n, file) == n)
        moved = (int32_t)n;
    if (fclose(file) != 0)
        moved = HAL_IO;
    return moved;
}
