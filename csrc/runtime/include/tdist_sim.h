/* Runtime of simulated NPUs: symmetric heap, launches, and what compiled kernels call.
 *
 * One process is one PE ("rank") of at most one job. Each PE of a job brings a memfd of
 * tdist_rt_segment_bytes() bytes, laid out as [control area][symmetric heap]; every PE maps the
 * memfds of all, one behind the other at equal distances. Offsets in the heap are in bytes from the
 * heap's first byte and mean the same object on every PE.
 *
 * Functions tdist_rt_* are for host code, from any thread. Those that return int give 0 for "done",
 * 1 for "not yet" where they take a slice, and -1 for failure, with the reason in
 * tdist_rt_last_error(). None of them throws. A call with a slice (nanoseconds, at least 0) returns
 * no later than that, rounded up to a kernel program that does not wait, and sooner when a signal
 * interrupts its sleep, so that the caller can serve it.
 *
 * Functions tdist_sim_* are for compiled kernels, and only inside a launch. They do not return when
 * they fail: the program is given up, and the host's next wait returns -1.
 *
 * Comparisons: EQ 0, NE 1, GT 2, GE 3, LT 4, LE 5, on signed integers.
 */
#ifndef TDIST_SIM_H
#define TDIST_SIM_H

#include <stdint.h> /* NOLINT(modernize-deprecated-headers): a C header */

#if defined(TDIST_SIM_BUILD)
#define TDIST_API __attribute__((visibility("default")))
#else
#define TDIST_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- A PE's table of waits -------------------------------------------------------------------
 * The control area of each PE holds a table of who waits there; every process of the job may read
 * it (tdist_rt_peer_waits). A record is guarded by a sequence number: odd while it is written. */

enum tdist_wait_kind {
  TDIST_WAIT_NONE = 0,
  TDIST_WAIT_WORD = 1,           /* a word of the PE's own symmetric heap */
  TDIST_WAIT_GRID_BARRIER = 2,   /* barrier_all: for other programs of the launch */
  TDIST_WAIT_DEVICE_BARRIER = 3, /* barrier_all: for the launches of other PEs */
  TDIST_WAIT_HOST_BARRIER = 4,   /* tdist_rt_barrier_wait: for the hosts of other PEs */
  TDIST_WAIT_LOOP = 5            /* a program that looks at memory again and again by itself */
};

typedef struct tdist_wait_record {
  int32_t kind;       /* enum tdist_wait_kind; TDIST_WAIT_NONE: the record is free */
  int32_t by_host;    /* 1: a host thread waits, and kernel, program and file say nothing */
  int32_t program[3]; /* x, y, z */
  int32_t line;       /* in file; 0 where not known */
  int64_t since_ns;   /* CLOCK_MONOTONIC */
  int64_t queued;     /* programs of the launch that have not started */
  uint64_t address;   /* of the word awaited, as the waiting process sees it; 0 for a barrier */
  int64_t offset;     /* of that word in the PE's heap, bytes; -1 for a barrier */
  int32_t width;      /* of that word, bytes */
  int32_t compare;    /* how the word is compared with wanted */
  int32_t index;      /* which word of a wait for several, from 0 */
  int32_t count;      /* how many words the wait is for */
  int64_t wanted;     /* value of the word; for a barrier how many must arrive */
  int64_t has;        /* for TDIST_WAIT_GRID_BARRIER how many had arrived */
  uint64_t epoch;     /* of a barrier among PEs: those whose count is at least this have arrived */
  int64_t object_offset; /* of the word from where that argument points, bytes */
  char object[40];       /* the argument of the kernel that leads to the word; "" where not known */
  char primitive[32];    /* texts end with a NUL; one that is too long loses its beginning */
  char kernel[128];
  char file[200];
} tdist_wait_record;

/* ---- General --------------------------------------------------------------------------------- */

TDIST_API int32_t tdist_rt_abi_version(void);

/* Why the last call on this thread failed; "" if none has. Valid until the next failure. */
TDIST_API const char *tdist_rt_last_error(void);

/* The strict mode, for jobs that this process attaches to from now on: what the rules of the shmem
 * library allow happens, as dice thrown from the seed of PE 0 decide. Stores and copies with `nbi`
 * become visible late, in any order; fresh symmetric memory holds 0x7ffd, 0x7ffd, ... (NaN in every
 * type of floating-point numbers); programs start, and take turns, in any order. */
TDIST_API void tdist_rt_strict(int32_t on, uint64_t seed);
/* The seed of the job's dice; -1 when not attached. */
TDIST_API int64_t tdist_rt_job_seed(void);

/* ---- The job and its symmetric heap ---------------------------------------------------------- */

/* Size of the memfd of one PE, for a heap of `heap_bytes`; -1 if that is not a size. */
TDIST_API int64_t tdist_rt_segment_bytes(int64_t heap_bytes);

/* Joins a job: maps `fds[0 .. world_size)`, in order of PEs. They stay the caller's to close. A
 * memfd serves one job once: its counters start from zero. */
TDIST_API int tdist_rt_attach(int32_t rank, int32_t world_size, const int32_t *fds,
                              int64_t heap_bytes);

/* Leaves the job. Its memory stays mapped until the last launch that was given to a stream in it
 * has ended. */
TDIST_API int tdist_rt_detach(void);

/* Where the heap of a PE begins in this process; NULL when not attached or no such PE. */
TDIST_API void *tdist_rt_heap_base(int32_t pe);

/* Takes `bytes` of this PE's heap, first fit, at a multiple of `align` (a power of two; at least 64
 * is taken). Equal calls in equal order give equal offsets on all PEs. The pages are reserved, so
 * that touching them cannot fail; their content is not defined. Returns the offset, or -1. */
TDIST_API int64_t tdist_rt_heap_alloc(int64_t bytes, int64_t align);

/* Gives back what tdist_rt_heap_alloc returned; whole pages go back to the system. */
TDIST_API int tdist_rt_heap_free(int64_t offset);

/* Bytes in live allocations, each rounded up to 64; 0 when not attached. */
TDIST_API int64_t tdist_rt_heap_used(void);

/* Fails unless the `bytes` (at least 1) at `addr`, a multiple of `align`, are inside one live
 * allocation of this PE, and in one of PE `pe` at the same offset. `what` begins the text. */
TDIST_API int tdist_rt_check_symmetric(const char *what, const void *addr, int64_t bytes,
                                       int64_t align, int32_t pe);

/* Fails unless the `bytes` (at least 1) at `addr` may be a local operand of a copy: mapped memory,
 * or in one live allocation of this PE. */
TDIST_API int tdist_rt_check_local(const char *what, const void *addr, int64_t bytes);

/* ---- Launches and streams --------------------------------------------------------------------
 * A stream is a number that host code chooses; it does what it is given one after the other. What a
 * stream was given n-th is its position n: reached when the stream has done it. Launches of
 * different streams share the cores of the simulated NPU: first come first served, programs beyond
 * that are queued in order. Threads of the library run the programs, and so does a host thread
 * while it waits in one of the calls with a slice.
 *
 * When a program fails its launch is dead, and what its stream was given behind it is not done. The
 * next call below that waits gives -1, once, and the text says what happened, in which kernel,
 * program, line and rank, and where it was launched. The stream can be used again. */

/* A compiled kernel: one program instance `pid` of `grid`. One 8-byte slot an argument: a pointer,
 * or the bits of a scalar in the low bytes. */
typedef void (*tdist_kernel_fn)(const uint64_t *args, const int32_t *grid, const int32_t *pid);

typedef struct tdist_launch {
  tdist_kernel_fn function;
  const char *kernel_name; /* copied */
  const char *file;        /* where host code launches; must stay valid until the process ends */
  const uint64_t *args;    /* copied; NULL: they follow this struct */
  const char *arg_names;   /* separated by commas; must stay valid as `file`; or NULL */
  int64_t stream;
  int32_t line; /* in file */
  int32_t grid[3];
  int32_t aic; /* cube and vector cores that a program takes */
  int32_t aiv;
  int32_t n_args;
  int32_t reserved; /* 0 */
} tdist_launch;

typedef struct tdist_range {
  const void *address;
  int64_t bytes;
} tdist_range;

/* What the simulated NPU has: cube and vector cores, and the number of threads that may run
 * programs at once (0: chosen by the host's cores). Acts on programs that start from now on. */
TDIST_API int tdist_rt_configure(int32_t aic, int32_t aiv, int32_t workers);

/* Gives a launch to its stream, and returns its position there, or -1. */
TDIST_API int64_t tdist_rt_launch(const tdist_launch *launch);

/* How many things a stream has been given. */
TDIST_API int64_t tdist_rt_stream_end(int64_t stream);
/* Whether a stream has reached a position: 1 or 0. */
TDIST_API int tdist_rt_stream_reached(int64_t stream, int64_t position);
/* The host waits until it has. */
TDIST_API int tdist_rt_stream_wait(int64_t stream, int64_t position, int64_t slice_ns);
/* Has `stream` wait, before what it is given next, until `other` has reached a position. */
TDIST_API int tdist_rt_stream_wait_for(int64_t stream, int64_t other, int64_t position);

/* The host waits until all streams have done everything. */
TDIST_API int tdist_rt_synchronize(int64_t slice_ns);
/* How many things all streams still have to do; -1: a failure has not been told yet. Cheap. */
TDIST_API int64_t tdist_rt_unfinished(void);
/* How long all programs in flight have waited, in loops of their own too, nanoseconds; 0 while one
 * gets on. */
TDIST_API int64_t tdist_rt_blocked_ns(void);

/* A launch was given memory when one of its arguments is an address in it; for symmetric memory: in
 * the same allocation, on whatever PE. Whether anything unfinished was given [addr, addr + bytes):
 * 1 or 0. */
TDIST_API int tdist_rt_memory_in_use(const void *addr, int64_t bytes);
/* The host waits until nothing that comes before the end of `stream`, or before what it waits for
 * in other streams, is still using one of the ranges. */
TDIST_API int tdist_rt_memory_wait(int64_t stream, const tdist_range *ranges, int32_t count,
                                   int64_t slice_ns);

/* A mark in a stream, which notes when the stream comes to it. To be freed; NULL: failed. */
TDIST_API void *tdist_rt_mark(int64_t stream);
/* CLOCK_MONOTONIC of that moment; 0: not yet. */
TDIST_API int64_t tdist_rt_mark_ns(const void *mark);
TDIST_API int tdist_rt_mark_wait(const void *mark, int64_t slice_ns);
TDIST_API int tdist_rt_stream_wait_mark(int64_t stream, const void *mark);
TDIST_API void tdist_rt_mark_free(void *mark);

/* Forgets everything unfinished; 1: a program still runs when the slice is over. tdist_rt_stop also
 * ends the library's threads; the next launch starts new ones. */
TDIST_API int tdist_rt_give_up(int64_t slice_ns);
TDIST_API int tdist_rt_stop(int64_t slice_ns);

/* What a rank's host thread does, as far as others may conclude from it that it will do nothing
 * until its wait is over. Host code sets it around its waits. */
typedef enum tdist_host_state {
  TDIST_HOST_RUNS = 0,         /* code that may do anything */
  TDIST_HOST_SYNCHRONIZES = 1, /* waits for this rank's own launches */
  TDIST_HOST_IN_SHMEM = 2,     /* in a collective call or a wait of the shmem library */
  TDIST_HOST_IN_HCCL = 3,      /* in a collective of hccl */
  TDIST_HOST_EXITED = 4
} tdist_host_state;

/* Publishes it to all PEs; returns the state before, TDIST_HOST_RUNS when not attached. */
TDIST_API int tdist_rt_host_state(int32_t state);

/* ---- Host side of the shmem library ---------------------------------------------------------- */

/* Barrier among host threads of all PEs, one a PE at a time. Apart from the device's barriers. */
TDIST_API int64_t tdist_rt_barrier_arrive(void); /* the ticket to wait with, or -1 */
TDIST_API int tdist_rt_barrier_wait(int64_t ticket, int64_t slice_ns);

/* Waits until the `bytes` (1, 2, 4 or 8) at `addr`, in this PE's heap, compare with `value`. What
 * other PEs wrote before the value is visible then. */
TDIST_API int tdist_rt_wait_until(const void *addr, int32_t bytes, int32_t cmp, int64_t value,
                                  int64_t slice_ns);

/* Copy to or from PE `pe`; `dst` of put and `src` of get are symmetric addresses of this PE. Both
 * are complete on return. */
TDIST_API int tdist_rt_put(void *dst, const void *src, int64_t bytes, int32_t pe);
TDIST_API int tdist_rt_get(void *dst, const void *src, int64_t bytes, int32_t pe);

/* The same, complete at the latest at the next tdist_rt_quiet, tdist_rt_fence or barrier of the
 * host; outside of the strict mode on return. */
TDIST_API int tdist_rt_put_nbi(void *dst, const void *src, int64_t bytes, int32_t pe);
TDIST_API int tdist_rt_get_nbi(void *dst, const void *src, int64_t bytes, int32_t pe);

/* Sets (op 0) or adds to (op 1) a signal word of `bytes` 4 or 8 on PE `pe`, after all this thread's
 * earlier stores. `sig` is a symmetric address of this PE. */
TDIST_API int tdist_rt_signal(void *sig, int32_t bytes, int64_t value, int32_t op, int32_t pe);

TDIST_API int tdist_rt_quiet(void);
TDIST_API int tdist_rt_fence(void);

/* The same in the order of a stream; wrong operands fail at once. */
TDIST_API int tdist_rt_put_on_stream(void *dst, const void *src, int64_t bytes, int32_t pe,
                                     int64_t stream);
TDIST_API int tdist_rt_get_on_stream(void *dst, const void *src, int64_t bytes, int32_t pe,
                                     int64_t stream);
TDIST_API int tdist_rt_signal_on_stream(void *sig, int32_t bytes, int64_t value, int32_t op,
                                        int32_t pe, int64_t stream);
TDIST_API int tdist_rt_wait_until_on_stream(const void *addr, int32_t bytes, int32_t cmp,
                                            int64_t value, int64_t stream);

/* To be called now and then by a host thread that waits in one of the states other than
 * TDIST_HOST_RUNS, each time that what it waits for is not there. 1: no rank of the job can go on,
 * not now and not later; 0: that is not known. `exited` has a value for each PE: not 0 where its
 * host does nothing any more. */
TDIST_API int tdist_rt_look(const uint8_t *exited, int32_t world_size);
/* What PE `pe` has published with tdist_rt_host_state, or -1. */
TDIST_API int tdist_rt_peer_host_state(int32_t pe);
/* Counts that a rank's host shares with the others, each under a key: set on this PE (1: there is
 * no room for it), and that of the first PE which has it (-1: none has; -2: that is not known,
 * since a PE has no room left). */
TDIST_API int tdist_rt_set_count(uint64_t key, uint64_t count);
TDIST_API int64_t tdist_rt_count_of(uint64_t key);

/* Puts a wait of code that is not a launch's, such as that of an interpreted kernel, into the table
 * of waits. To be given to tdist_rt_unlist_wait, once; NULL: not attached, or the table is full. */
TDIST_API void *tdist_rt_list_wait(const tdist_wait_record *record);
TDIST_API void tdist_rt_unlist_wait(void *listed);
/* Makes `text` the verdict of the job, which every rank may read; the first one stays. */
TDIST_API int tdist_rt_judge(const char *text);
/* The verdict, "" as long as there is none. Returns the bytes needed, NUL included, or -1. */
TDIST_API int64_t tdist_rt_verdict(char *buffer, int64_t capacity);

/* Who waits in this process, as a JSON list with a NUL behind it. Each item has: kernel (null for a
 * host thread), program [x,y,z] (null), file (null), line, primitive, address, pe_offset (null for
 * barriers), compare ("=="), wanted, has, index, count (words of the wait), queued, missing_pes
 * (for barriers among PEs, else null), object (the kernel's argument that leads to the word, else
 * null) and object_offset (bytes), width, allocation ({offset, bytes} that has the word, else
 * null), last_writer (of the word by a signal; null if none is known) and near (writers of other
 * words of the allocation, latest first), loops (true: a loop of the program's own looks at memory,
 * and wanted and has say nothing), seconds. A writer has rank, primitive, kernel, program,
 * file, line (as above), pe_offset, width, value, add (true: it was added) and seconds since. A
 * wait is listed once it has lasted some microseconds. Where the table overflowed, a last item says
 * how many are not listed. Returns the bytes needed, NUL included, or -1; nothing is written unless
 * `capacity` suffices. Any thread may call it, while others wait. "[]" when not attached. */
TDIST_API int64_t tdist_rt_describe_waits(char *buffer, int64_t capacity);

/* The same of another PE of the job; its addresses are those of that PE's process. */
TDIST_API int tdist_rt_peer_waits(int32_t pe, char *buf, int64_t cap);
/* The launch of a PE that has ended last, as JSON: {"kernel", "seconds"} (since then), or null.
 * Returns as tdist_rt_peer_waits. */
TDIST_API int tdist_rt_peer_finished(int32_t pe, char *buf, int64_t cap);

/* ---- Traces ---------------------------------------------------------------------------------- */

enum tdist_trace_kind {
  TDIST_TRACE_NONE = 0,    /* the record is not written yet */
  TDIST_TRACE_PROGRAM = 1, /* a program on its core */
  TDIST_TRACE_CALL = 2,    /* a call of a program that takes time, or tells others something */
  TDIST_TRACE_SEEN = 3,    /* a word that a call waits for has been seen as wanted */
  TDIST_TRACE_HOST = 4     /* a call of host code */
};

/* From now on, launches write their events into file `fd`, which stays the caller's to close; this
 * process must be attached. The file's form is in trace.h. */
TDIST_API int tdist_rt_trace_begin(int32_t fd);
/* Launches that begin from now on write nothing. */
TDIST_API void tdist_rt_trace_end(void);
/* Writes down a call of host code that has ended; `pe` -1 and `bytes` 0: says nothing of that.
 * A signal is one of `bytes` 4 or 8 with `op` 0 (set) or 1 (add), else `op` is -1. Does nothing
 * while nothing is traced. Times are CLOCK_MONOTONIC, nanoseconds. */
TDIST_API void tdist_rt_trace_host(const char *name, int64_t begin_ns, int64_t end_ns,
                                   const void *addr, int32_t pe, int64_t bytes, int64_t value,
                                   int32_t op);

/* ---- Called by compiled kernels -------------------------------------------------------------- */

/* Where in the kernel's source a call stands. */
typedef struct {
  const char *file;
  int32_t line;
  int32_t column;
} tdist_loc;

TDIST_API int32_t tdist_sim_my_pe(int32_t axis, const tdist_loc *loc);
TDIST_API int32_t tdist_sim_n_pes(int32_t axis, const tdist_loc *loc);
TDIST_API int32_t tdist_sim_team_my_pe(int32_t team, const tdist_loc *loc);
TDIST_API int32_t tdist_sim_team_n_pes(int32_t team, const tdist_loc *loc);

/* How far, in elements, the object at `addr` of this PE is from the same object of PE `pe`. */
TDIST_API int64_t tdist_sim_delta(int64_t addr, int32_t pe, int32_t elem_bytes,
                                  const tdist_loc *loc);

/* op: 1 set, 2 add. All earlier stores of the program are visible to who sees the new value. */
TDIST_API int32_t tdist_sim_notify_i32(int64_t addr, int32_t pe, int32_t value, int32_t op,
                                       int32_t scope, const tdist_loc *loc);
TDIST_API int32_t tdist_sim_notify_i64(int64_t addr, int32_t pe, int64_t value, int32_t op,
                                       int32_t scope, const tdist_loc *loc);

/* Blocks until each of `count` words, 64 bytes apart, has been seen equal to `value`, one after the
 * other. Acquires, whatever the semantic asked for. Returns the token 0. */
TDIST_API int32_t tdist_sim_wait_i32(int64_t addr, int32_t count, int32_t value, int32_t scope,
                                     int32_t semantic, const tdist_loc *loc);
TDIST_API int32_t tdist_sim_wait_i64(int64_t addr, int32_t count, int64_t value, int32_t scope,
                                     int32_t semantic, const tdist_loc *loc);

/* Blocks until all programs of the running launches of all PEs have arrived. */
TDIST_API int32_t tdist_sim_barrier_all(int32_t zero, const tdist_loc *loc);
TDIST_API int32_t tdist_sim_barrier_all_vec(int32_t zero, const tdist_loc *loc);

TDIST_API int32_t tdist_sim_quiet(int32_t zero, const tdist_loc *loc);
TDIST_API int32_t tdist_sim_fence(int32_t zero, const tdist_loc *loc);

TDIST_API int32_t tdist_sim_putmem(int64_t dst, int64_t src, int32_t bytes, int32_t pe,
                                   const tdist_loc *loc);
TDIST_API int32_t tdist_sim_putmem_nbi(int64_t dst, int64_t src, int32_t bytes, int32_t pe,
                                       const tdist_loc *loc);
TDIST_API int32_t tdist_sim_getmem(int64_t dst, int64_t src, int32_t bytes, int32_t pe,
                                   const tdist_loc *loc);
TDIST_API int32_t tdist_sim_getmem_nbi(int64_t dst, int64_t src, int32_t bytes, int32_t pe,
                                       const tdist_loc *loc);

/* Signal words are int32; op: 0 set, 1 add. */
TDIST_API int32_t tdist_sim_putmem_signal(int64_t dst, int64_t src, int32_t bytes, int64_t sig,
                                          int32_t signal, int32_t op, int32_t pe,
                                          const tdist_loc *loc);
TDIST_API int32_t tdist_sim_putmem_signal_nbi(int64_t dst, int64_t src, int32_t bytes, int64_t sig,
                                              int32_t signal, int32_t op, int32_t pe,
                                              const tdist_loc *loc);
TDIST_API int32_t tdist_sim_signal_op(int64_t sig, int32_t signal, int32_t op, int32_t pe,
                                      const tdist_loc *loc);

/* Returns the value that satisfied the comparison. */
TDIST_API int32_t tdist_sim_signal_wait_until(int64_t sig, int32_t cmp, int32_t value,
                                              const tdist_loc *loc);
TDIST_API int32_t tdist_sim_int_p(int64_t dst, int32_t value, int32_t pe, const tdist_loc *loc);

/* Ends the launch with the text at that address. */
TDIST_API int32_t tdist_sim_assert_failed(int64_t text, const tdist_loc *loc);

/* What kernels compiled for the strict mode do instead of a load or a store of memory that others
 * may see, and before an atomic operation. `target` and `source` are the program's own memory. */
TDIST_API void tdist_sim_load(const void *address, void *target, int64_t bytes,
                              const tdist_loc *loc);
TDIST_API void tdist_sim_store(void *address, const void *source, int64_t bytes,
                               const tdist_loc *loc);
TDIST_API void tdist_sim_release(const tdist_loc *loc);

/* Memory of the running program; what it does not free is freed when it ends or fails. */
TDIST_API void *tdist_sim_alloc(int64_t align, int64_t bytes);
TDIST_API void tdist_sim_free(void *memory);

/* Lets other programs run: for a loop that waits by itself, for memory that another one changes.
 * `loc` is the loop's. */
TDIST_API void tdist_sim_yield(const tdist_loc *loc);
/* The same where the program has run for long: for a loop that computes. */
TDIST_API void tdist_sim_take_turns(void);

#ifdef __cplusplus
}
#endif

#endif
