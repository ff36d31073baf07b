/*
 * volery: correlated oblivious transfer (COT), random and chosen OT, vector oblivious linear
 * evaluation (VOLE) and a batched oblivious PRF between two parties, over the caller's transport.
 * For C99 and C++17. docs/library.md of the repository has an example and says how to build and
 * install.
 *
 * STATUS
 *   Functions return VOLERY_OK or the reason of the failure; volery_last_error() then has the
 *   message. Check every status: after a failure no output is a result.
 *   - VOLERY_USAGE: the arguments are wrong. Nothing was sent and no object changed, except where
 *     a function says so.
 *   - After any other status the object is of no use any more: its secrets are deleted, and every
 *     call but its _free fails again with the same status. Close the connection then, so that the
 *     peer does not wait: it gets no message about the failure.
 *   - A failed call leaves every output buffer either all zero or as it was. A failed _new sets the
 *     caller's variable to NULL.
 *
 * TRANSPORT
 *   The caller brings a reliable, ordered stream of bytes in both directions, see volery_transport.
 *   It should be authenticated and encrypted (TLS with both certificates checked): the protocols
 *   protect the parties from each other, and not from others on the network.
 *   Both parties make the same calls, in the same order, with the same n: where one calls a
 *   function of a sender, the other calls the one of the same name of a receiver. When a call
 *   returns, all its bytes have been handed to `send`, and `receive` was asked for no byte beyond
 *   its own. So any number of objects may use one transport in turns, and the caller may send
 *   messages of its own on it between calls.
 *
 * OBJECTS, MEMORY, THREADS, FORK
 *   _new makes an object, _free deletes it and wipes its secrets (NULL is allowed). Everything else
 *   belongs to the caller: the library keeps no pointer to a buffer, to items or to options after
 *   the call, and copies volery_transport, whose `context` has to live as long as the object.
 *   Output buffers must not overlap other arguments (checked), and need not be initialised.
 *   An object may be used from any thread, by one call at a time: a second one at the same time is
 *   refused with VOLERY_USAGE. Calls on different objects may run at the same time if these have
 *   different transports. _free must not run beside another call on the object; if it does, it has
 *   no effect. The last 64 objects that were freed are remembered: a call on one of them is refused
 *   with VOLERY_USAGE, and a second _free has no effect. On one freed earlier both are undefined.
 *   Computation runs in one pool of threads for the process, a thread for each processor; set the
 *   environment variable RAYON_NUM_THREADS before the first call for fewer. VOLERY_CPU names a
 *   level of kernels, for tests; a _new returns VOLERY_USAGE where the processor lacks that level.
 *   After fork() only one process may go on to use an object: both would have the same secrets. A
 *   process that has made calls should not fork and then make more in the child, where the pool of
 *   threads is missing.
 *
 * LAYOUT
 *   volery_block: 128 bits, little endian: bit i is bit i % 8 of byte i / 8. In GF(2^128) bit i is
 *     the coefficient of X^i, and the modulus is X^128 + X^7 + X^2 + X + 1. A block may lie at any
 *     address; at a multiple of 16 the library writes it in place and does not copy. Arrays of
 *     __m128i, of unsigned __int128 or of uint64_t[2] (low word first) have this layout on
 *     little-endian machines, and volery runs on no others.
 *   Bits: packed, low bit first: bit i is bit i % 8 of byte i / 8, n bits take (n + 7) / 8 bytes.
 *     Unused bits of the last byte are zero in outputs and ignored in inputs.
 *   Elements of rings: 64-bit words. VOLERY_FP61, integers modulo 2^61 - 1, one word from 0 to
 *     2^61 - 2. VOLERY_Z64, integers modulo 2^64, one word. VOLERY_GF128, two words, low first.
 *
 * SECURITY
 *   The default is security against malicious parties: the peer may deviate in any way, and the
 *   call then fails before any output is released. VOLERY_SEMI_HONEST is for peers that follow the
 *   protocol; VOLERY_Z64 has nothing else. SECURITY.md of the repository has the assumptions.
 *   Secret are: delta, v, u, w, x, messages, choice bits, items, and outputs of the PRF. The
 *   library wipes its copies and prints none; the caller has to protect and wipe its own.
 */
#ifndef VOLERY_H
#define VOLERY_H

#include <stddef.h>
#include <stdint.h>

#define VOLERY_VERSION "0.1.0"

#if defined(__GNUC__) || defined(__clang__)
#define VOLERY_CHECKED __attribute__((warn_unused_result))
#else
#define VOLERY_CHECKED
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A status. The numbers are those of the exit statuses of the program volery. */
typedef int32_t volery_status;
enum {
    VOLERY_OK = 0,
    VOLERY_OTHER = 1,    /* anything else */
    VOLERY_USAGE = 2,    /* wrong arguments */
    VOLERY_PEER = 3,     /* the peer broke the protocol, or a check of its messages failed */
    VOLERY_NETWORK = 4,  /* a callback failed */
    VOLERY_SETTINGS = 5  /* the two parties have different options, roles, protocols or versions */
};

/* The version of the library, such as "0.1.0". Both parties need the same. Never freed. */
const char *volery_version(void);

/*
 * The message of the last call that failed on this thread, one line in English without secrets;
 * empty before the first. Valid until the next failure on this thread.
 */
const char *volery_last_error(void);

/*
 * The caller's stream to the peer.
 *
 * `send` hands over `length` bytes at `data`, `receive` fills `length` bytes at `data`; neither
 * returns before it is done with all of them. 0 means success, any other value a failure: the call
 * of the library that is running then fails with VOLERY_NETWORK. The end of the stream is a
 * failure of `receive`. A time limit is up to the callbacks. `length` is never 0, and may be
 * hundreds of megabytes.
 *
 * The library calls them during a call of the library only, on the thread that made it, one at a
 * time. It does not buffer for the network: `send` must deliver without another call, and must not
 * wait for ever for the peer to read while the peer sends, too. The two parties send at the same
 * time at most VOLERY_BOTH_SEND bytes each before one of them receives, which the buffers of a
 * socket hold.
 *
 * A callback must not throw an exception (the process is aborted), must not longjmp out, and may
 * not use the object whose call is running.
 */
typedef struct volery_transport {
    void *context; /* first argument of both; may be NULL */
    int (*send)(void *context, const uint8_t *data, size_t length);
    int (*receive)(void *context, uint8_t *data, size_t length);
} volery_transport;

#define VOLERY_BOTH_SEND 16384

/* Values of `security`. */
enum {
    VOLERY_MALICIOUS = 0,
    VOLERY_SEMI_HONEST = 1
};

/*
 * Options of a protocol: the same at both parties, which compare them first, but for `test_seed`.
 * Begin with VOLERY_OPTIONS_INIT, so that a later version can append fields; NULL stands for the
 * same. Zero is the default of every field but `size`.
 *
 * `test_seed` is INSECURE, and for tests alone: all randomness of this party follows from it, so
 * that a run with the same seeds at both parties repeats byte by byte. Whoever knows the seed knows
 * every secret, and objects made with the same seed have the same secrets.
 */
typedef struct volery_options {
    uint32_t size;          /* sizeof(volery_options) */
    uint32_t security;      /* VOLERY_MALICIOUS or VOLERY_SEMI_HONEST */
    uint64_t total;         /* correlations of the stream in all; 0: no end, in bounded memory */
    double bits_per_second; /* of the link, from which parameters are chosen; 0: 1e9 */
    double round_trip;      /* of the link, seconds; 0: 5e-4 */
    uint64_t for_cards;     /* 1: rounds that CUDA cards compute, at whichever party; 0: by the link */
    uint64_t test_seed;     /* 0: randomness of the system; other values are INSECURE, see above */
} volery_options;

#define VOLERY_OPTIONS_INIT { (uint32_t)sizeof(volery_options), 0, 0, 0.0, 0.0, 0, 0 }

/* 128 bits: see LAYOUT above. */
typedef struct volery_block {
    uint8_t bytes[16];
} volery_block;

/* A string of bytes of the caller. `data` may be NULL if `length` is 0. */
typedef struct volery_bytes {
    const uint8_t *data;
    size_t length;
} volery_bytes;

/*
 * Correlated OT: w[i] = v[i] + u[i] * delta, where + is XOR. The sender has delta and v, the
 * receiver random bits u and w.
 *
 * All functions of one pair of objects draw from one stream; each correlation is used once.
 *
 * A correlation is not an OT: all rows share delta, so v and v + delta must never be used as
 * messages or as keys, in whole or in part. The functions _random, _random_chosen and _chosen hash
 * each row as that needs, with a tweak of its own. Whoever draws rows by _extend has to hash them
 * by a correlation-robust hash with a tweak that never repeats, or use them in a protocol that
 * wants the correlation itself, such as authenticated bits. One known bit of a block carries u (in
 * a delta that the library picks the lowest): no bit of w may be used as key without hashing.
 */
typedef struct volery_cot_sender volery_cot_sender;
typedef struct volery_cot_receiver volery_cot_receiver;

/*
 * Runs the handshake and the setup. `delta`: not zero; NULL for a random one, which is better: of a
 * given one the receiver learns the place of a set bit.
 * VOLERY_USAGE: before anything is sent.
 */
VOLERY_CHECKED volery_status volery_cot_sender_new(const volery_transport *transport,
                                                   const volery_options *options,
                                                   const volery_block *delta,
                                                   volery_cot_sender **sender);
VOLERY_CHECKED volery_status volery_cot_receiver_new(const volery_transport *transport,
                                                     const volery_options *options,
                                                     volery_cot_receiver **receiver);

/* Writes delta. Sends nothing. */
VOLERY_CHECKED volery_status volery_cot_sender_delta(volery_cot_sender *sender,
                                                     volery_block *delta);

/* The next n correlations: v and w have n blocks, u has n bits. */
VOLERY_CHECKED volery_status volery_cot_sender_extend(volery_cot_sender *sender, volery_block *v,
                                                      size_t n);
VOLERY_CHECKED volery_status volery_cot_receiver_extend(volery_cot_receiver *receiver, uint8_t *u,
                                                        volery_block *w, size_t n);

/*
 * The same with the n bits x that the receiver chooses: w[i] = v[i] + x[i] * delta. What is said
 * above of the choice bits u holds for x.
 */
VOLERY_CHECKED volery_status volery_cot_sender_extend_chosen(volery_cot_sender *sender,
                                                             volery_block *v, size_t n);
VOLERY_CHECKED volery_status volery_cot_receiver_extend_chosen(volery_cot_receiver *receiver,
                                                               const uint8_t *x, volery_block *w,
                                                               size_t n);

/*
 * Exchanges the messages of the next round of the stream now, unless that was done before. Writes
 * how many correlations then take no message: 0 where the stream has no rounds, or is at its end.
 */
VOLERY_CHECKED volery_status volery_cot_sender_prepare(volery_cot_sender *sender, uint64_t *ready);
VOLERY_CHECKED volery_status volery_cot_receiver_prepare(volery_cot_receiver *receiver,
                                                         uint64_t *ready);

/*
 * n random OTs: m[2*i] and m[2*i + 1] are random messages at the sender, which has 2*n blocks; the
 * receiver gets random bits u and the n blocks m[i] of the sender's m[2*i + u[i]].
 */
VOLERY_CHECKED volery_status volery_cot_sender_random(volery_cot_sender *sender, volery_block *m,
                                                      size_t n);
VOLERY_CHECKED volery_status volery_cot_receiver_random(volery_cot_receiver *receiver, uint8_t *u,
                                                        volery_block *m, size_t n);

/* The same with the n bits x that the receiver chooses. */
VOLERY_CHECKED volery_status volery_cot_sender_random_chosen(volery_cot_sender *sender,
                                                             volery_block *m, size_t n);
VOLERY_CHECKED volery_status volery_cot_receiver_random_chosen(volery_cot_receiver *receiver,
                                                               const uint8_t *x, volery_block *m,
                                                               size_t n);

/*
 * n OTs of chosen messages: the sender gives 2*n blocks, the receiver n bits x and gets the n
 * blocks messages[2*i + x[i]].
 */
VOLERY_CHECKED volery_status volery_cot_sender_chosen(volery_cot_sender *sender,
                                                      const volery_block *messages, size_t n);
VOLERY_CHECKED volery_status volery_cot_receiver_chosen(volery_cot_receiver *receiver,
                                                        const uint8_t *x, volery_block *m,
                                                        size_t n);

/*
 * n OTs of chosen strings of `length` bytes, at least 1: the sender gives n strings for 0 and n for
 * 1, one behind the other, n * length bytes each; the receiver n bits x, and gets n * length bytes,
 * string i from zeros or from ones by x[i]. zeros and ones may overlap.
 */
VOLERY_CHECKED volery_status volery_cot_sender_chosen_bytes(volery_cot_sender *sender,
                                                            const uint8_t *zeros,
                                                            const uint8_t *ones, size_t length,
                                                            size_t n);
VOLERY_CHECKED volery_status volery_cot_receiver_chosen_bytes(volery_cot_receiver *receiver,
                                                              const uint8_t *x, uint8_t *m,
                                                              size_t length, size_t n);

void volery_cot_sender_free(volery_cot_sender *sender);
void volery_cot_receiver_free(volery_cot_receiver *receiver);

/*
 * Correlated OT into memory of a CUDA card: as above, where v, w and u are addresses of the card with
 * that number (from 0), such as those of cudaMalloc in its primary context, at multiples of 16 bytes.
 * u has (n + 31) / 32 words, bit i being bit i % 32 of word i / 32. `for_cards` has to be 1 at both
 * parties; the peer may be one of these objects or of those above. When a call returns, its outputs
 * are there for every stream; work of the caller on the memory has to be done before. Draws of
 * millions take the least time.
 * VOLERY_USAGE in a library built without the feature gpu, or where the card cannot be used. After
 * another failure the outputs are zero, unless the card itself fails.
 */
typedef struct volery_cot_sender_on_device volery_cot_sender_on_device;
typedef struct volery_cot_receiver_on_device volery_cot_receiver_on_device;

VOLERY_CHECKED volery_status volery_cot_sender_on_device_new(const volery_transport *transport,
                                                             const volery_options *options,
                                                             const volery_block *delta,
                                                             int32_t device,
                                                             volery_cot_sender_on_device **sender);
VOLERY_CHECKED volery_status volery_cot_receiver_on_device_new(
    const volery_transport *transport, const volery_options *options, int32_t device,
    volery_cot_receiver_on_device **receiver);

/* Writes delta, to memory of the processor. Sends nothing. */
VOLERY_CHECKED volery_status volery_cot_sender_on_device_delta(volery_cot_sender_on_device *sender,
                                                               volery_block *delta);

/* The next n correlations. */
VOLERY_CHECKED volery_status volery_cot_sender_on_device_extend(volery_cot_sender_on_device *sender,
                                                                volery_block *v, size_t n);
VOLERY_CHECKED volery_status volery_cot_receiver_on_device_extend(
    volery_cot_receiver_on_device *receiver, uint32_t *u, volery_block *w, size_t n);

void volery_cot_sender_on_device_free(volery_cot_sender_on_device *sender);
void volery_cot_receiver_on_device_free(volery_cot_receiver_on_device *receiver);

/*
 * Vector OLE: w[i] = u[i] * x + v[i] over a ring. The sender has random u and v, the receiver x and
 * w.
 */
typedef struct volery_vole_sender volery_vole_sender;
typedef struct volery_vole_receiver volery_vole_receiver;

/* Rings; the words of an element are in LAYOUT above. */
enum {
    VOLERY_FP61 = 1,  /* integers modulo 2^61 - 1 */
    VOLERY_GF128 = 2, /* the field of 2^128 elements */
    VOLERY_Z64 = 3    /* integers modulo 2^64; needs VOLERY_SEMI_HONEST */
};

/*
 * Runs the handshake and the setup. `x`: an element of the ring, or NULL for a random one.
 * VOLERY_USAGE: before anything is sent.
 */
VOLERY_CHECKED volery_status volery_vole_sender_new(const volery_transport *transport,
                                                    const volery_options *options, int32_t ring,
                                                    volery_vole_sender **sender);
VOLERY_CHECKED volery_status volery_vole_receiver_new(const volery_transport *transport,
                                                      const volery_options *options, int32_t ring,
                                                      const uint64_t *x,
                                                      volery_vole_receiver **receiver);

/* Writes x, one element: two words over VOLERY_GF128, else one. Sends nothing. */
VOLERY_CHECKED volery_status volery_vole_receiver_x(volery_vole_receiver *receiver, uint64_t *x);

/* The next n correlations: u, v and w have n elements, 2*n words over VOLERY_GF128, else n. */
VOLERY_CHECKED volery_status volery_vole_sender_extend(volery_vole_sender *sender, uint64_t *u,
                                                       uint64_t *v, size_t n);
VOLERY_CHECKED volery_status volery_vole_receiver_extend(volery_vole_receiver *receiver,
                                                         uint64_t *w, size_t n);

/* As volery_cot_sender_prepare. */
VOLERY_CHECKED volery_status volery_vole_sender_prepare(volery_vole_sender *sender,
                                                        uint64_t *ready);
VOLERY_CHECKED volery_status volery_vole_receiver_prepare(volery_vole_receiver *receiver,
                                                          uint64_t *ready);

void volery_vole_sender_free(volery_vole_sender *sender);
void volery_vole_receiver_free(volery_vole_receiver *receiver);

/*
 * A setup for several vector OLEs with the same peer, each with its own x: the operations with
 * public keys run once, in _new, of whose options only `security` and `test_seed` count. _stream
 * makes an object like volery_vole_sender_new and volery_vole_receiver_new, on the transport of the
 * setup, with options (but for `test_seed`) and a ring of its own. Both parties make the same
 * streams in the same order: VOLERY_SETTINGS if the two differ. The setup may be freed before its
 * streams. A failed call on the setup or on one of its streams, other than VOLERY_USAGE, ends all.
 */
typedef struct volery_vole_setup_sender volery_vole_setup_sender;
typedef struct volery_vole_setup_receiver volery_vole_setup_receiver;

VOLERY_CHECKED volery_status volery_vole_setup_sender_new(const volery_transport *transport,
                                                          const volery_options *options,
                                                          volery_vole_setup_sender **setup);
VOLERY_CHECKED volery_status volery_vole_setup_receiver_new(const volery_transport *transport,
                                                            const volery_options *options,
                                                            volery_vole_setup_receiver **setup);

/* VOLERY_USAGE: before anything is sent. */
VOLERY_CHECKED volery_status volery_vole_setup_sender_stream(volery_vole_setup_sender *setup,
                                                             const volery_options *options,
                                                             int32_t ring,
                                                             volery_vole_sender **sender);
VOLERY_CHECKED volery_status volery_vole_setup_receiver_stream(volery_vole_setup_receiver *setup,
                                                               const volery_options *options,
                                                               int32_t ring, const uint64_t *x,
                                                               volery_vole_receiver **receiver);

void volery_vole_setup_sender_free(volery_vole_setup_sender *setup);
void volery_vole_setup_receiver_free(volery_vole_setup_receiver *setup);

/*
 * Batched oblivious PRF (from VOLE): the receiver gets the output of a random function on each of
 * its items, the sender gets the function and can compute it on any item. Outputs on items that the
 * receiver did not give look random to it. Neither learns the items of the other; the sender learns
 * their number.
 *
 * Items are byte strings of any length. `total` in the options must be 0.
 */
typedef struct volery_oprf_sender volery_oprf_sender;

/* The whole protocol of the sender. VOLERY_USAGE: before anything is sent. */
VOLERY_CHECKED volery_status volery_oprf_sender_new(const volery_transport *transport,
                                                    const volery_options *options,
                                                    volery_oprf_sender **sender);

/* Writes the number of items that the receiver stated. A malicious one may have tested some more:
   SECURITY.md has the bound. */
VOLERY_CHECKED volery_status volery_oprf_sender_items(volery_oprf_sender *sender, uint64_t *items);

/* Writes the outputs on n items, which may repeat. Sends nothing; any number of calls. */
VOLERY_CHECKED volery_status volery_oprf_sender_evaluate(volery_oprf_sender *sender,
                                                         const volery_bytes *items,
                                                         volery_block *outputs, size_t n);

void volery_oprf_sender_free(volery_oprf_sender *sender);

/*
 * The whole protocol of the receiver: the outputs on n different items.
 * VOLERY_USAGE: before anything is sent, except for equal items, which are found after the sizes
 * were exchanged: close the connection then.
 */
VOLERY_CHECKED volery_status volery_oprf_receive(const volery_transport *transport,
                                                 const volery_options *options,
                                                 const volery_bytes *items, volery_block *outputs,
                                                 size_t n);

#ifdef __cplusplus
}
#endif

#endif
