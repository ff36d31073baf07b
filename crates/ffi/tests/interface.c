/*
 * Every function of volery.h, by two threads over a pipe in memory that holds VOLERY_BOTH_SEND
 * bytes in each direction, and the errors. Exits with 1 and a line at the first difference.
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <volery.h>

/* What must never change; C99 has no _Static_assert. */
#define HOLDS(name, condition) typedef char name[(condition) ? 1 : -1]
HOLDS(options_size, sizeof(volery_options) == 48);
HOLDS(options_security, offsetof(volery_options, security) == 4);
HOLDS(options_total, offsetof(volery_options, total) == 8);
HOLDS(options_rate, offsetof(volery_options, bits_per_second) == 16);
HOLDS(options_round_trip, offsetof(volery_options, round_trip) == 24);
HOLDS(options_for_cards, offsetof(volery_options, for_cards) == 32);
HOLDS(options_test_seed, offsetof(volery_options, test_seed) == 40);
HOLDS(block_size, sizeof(volery_block) == 16);
HOLDS(bytes_size, sizeof(volery_bytes) == 2 * sizeof(void *));
HOLDS(bytes_length, offsetof(volery_bytes, length) == sizeof(void *));
HOLDS(transport_size, sizeof(volery_transport) == 3 * sizeof(void *));

#define CHECK(condition)                                                                        \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition,      \
                    volery_last_error());                                                       \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)

#define REFUSED(call, text)                                                                     \
    do {                                                                                        \
        CHECK((call) == VOLERY_USAGE);                                                          \
        CHECK(strstr(volery_last_error(), text) != NULL);                                       \
    } while (0)

/* One direction. */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint8_t bytes[VOLERY_BOTH_SEND];
    size_t first, count;
    int closed;
} pipe_t;

typedef struct {
    pipe_t *out, *in;
    size_t sent;      /* so far */
    size_t fail_from; /* send fails from this byte on; 0: never */
    size_t flip;      /* the byte that is changed; 0: none */
    int (*during)(void *context); /* called by the first send */
    void *object;
} end_t;

/* Waits for a change, with the lock held: 0, or 1 after a minute, which is a deadlock. */
static int wait_for(pipe_t *pipe) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    if (pthread_cond_timedwait(&pipe->changed, &pipe->lock, &until) != 0) {
        fprintf(stderr, "the parties wait for each other\n");
        return 1;
    }
    return 0;
}

static int put(void *context, const uint8_t *data, size_t length) {
    end_t *end = context;
    pipe_t *pipe = end->out;
    int outcome = 0;
    if (end->during) {
        int (*during)(void *) = end->during;
        end->during = NULL;
        if (during(end)) return 7;
    }
    pthread_mutex_lock(&pipe->lock);
    for (size_t i = 0; i < length && !outcome; i++) {
        while (pipe->count == sizeof pipe->bytes && !pipe->closed && !outcome)
            outcome = wait_for(pipe);
        if (pipe->closed || (end->fail_from && end->sent >= end->fail_from)) outcome = 1;
        if (outcome) break;
        pipe->bytes[(pipe->first + pipe->count++) % sizeof pipe->bytes] =
            data[i] ^ (uint8_t)(end->flip && end->sent == end->flip);
        end->sent++;
        if (pipe->count == 1 || pipe->count == sizeof pipe->bytes)
            pthread_cond_broadcast(&pipe->changed);
    }
    pthread_mutex_unlock(&pipe->lock);
    return outcome;
}

static int get(void *context, uint8_t *data, size_t length) {
    pipe_t *pipe = ((end_t *)context)->in;
    int outcome = 0;
    pthread_mutex_lock(&pipe->lock);
    for (size_t i = 0; i < length && !outcome; i++) {
        while (pipe->count == 0 && !pipe->closed && !outcome) outcome = wait_for(pipe);
        if (pipe->count == 0) outcome = 1;
        if (outcome) break;
        data[i] = pipe->bytes[pipe->first];
        pipe->first = (pipe->first + 1) % sizeof pipe->bytes;
        pipe->count--;
        if (pipe->count == 0 || pipe->count + 1 == sizeof pipe->bytes)
            pthread_cond_broadcast(&pipe->changed);
    }
    pthread_mutex_unlock(&pipe->lock);
    return outcome;
}

static void close_pipe(pipe_t *pipe) {
    pthread_mutex_lock(&pipe->lock);
    pipe->closed = 1;
    pthread_cond_broadcast(&pipe->changed);
    pthread_mutex_unlock(&pipe->lock);
}

/* A party: its end, and what the test gives it and gets from it. */
typedef struct party {
    end_t end;
    volery_transport transport;
    void (*run)(struct party *);
    volery_options options;
    int32_t ring;
    size_t n;
    volery_status status; /* of the call that is to fail */
    int done;             /* a part of the test that one party alone runs */
    volery_block key;     /* delta or x */
    volery_block *blocks[4];
    uint8_t *bits[4];
    uint64_t *words[3];
} party;

static void *run_thread(void *argument) {
    party *self = argument;
    self->run(self);
    close_pipe(self->end.out);
    close_pipe(self->end.in);
    return NULL;
}

static void *allocate(size_t size) {
    void *memory = malloc(size ? size : 1);
    CHECK(memory != NULL);
    memset(memory, 0xa5, size); /* the library must not rely on zeros */
    return memory;
}

/* Of the following runs. */
static double bits_per_second, round_trip;

static void prepare(party *parties, void (*sender)(party *), void (*receiver)(party *)) {
    memset(parties, 0, 2 * sizeof *parties);
    for (int i = 0; i < 2; i++) {
        const volery_options options = VOLERY_OPTIONS_INIT;
        parties[i].options = options;
        parties[i].options.bits_per_second = bits_per_second;
        parties[i].options.round_trip = round_trip;
        parties[i].run = i ? receiver : sender;
        parties[i].transport.context = &parties[i].end;
        parties[i].transport.send = put;
        parties[i].transport.receive = get;
    }
}

static void run(party *parties) {
    pipe_t *pipes = calloc(2, sizeof *pipes);
    pthread_t thread;
    CHECK(pipes != NULL);
    for (int i = 0; i < 2; i++) {
        pthread_mutex_init(&pipes[i].lock, NULL);
        pthread_cond_init(&pipes[i].changed, NULL);
        parties[i].end.out = &pipes[i];
        parties[i].end.in = &pipes[1 - i];
    }
    CHECK(pthread_create(&thread, NULL, run_thread, &parties[1]) == 0);
    run_thread(&parties[0]);
    pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++) {
        pthread_mutex_destroy(&pipes[i].lock);
        pthread_cond_destroy(&pipes[i].changed);
    }
    free(pipes);
}

static void clean(party *parties) {
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 4; j++) free(parties[i].blocks[j]);
        for (int j = 0; j < 4; j++) free(parties[i].bits[j]);
        for (int j = 0; j < 3; j++) free(parties[i].words[j]);
    }
}

static int bit(const uint8_t *bits, size_t i) { return bits[i / 8] >> (i % 8) & 1; }

static int same(const volery_block *a, const volery_block *b) { return !memcmp(a, b, 16); }

static volery_block sum(volery_block a, volery_block b) {
    for (int i = 0; i < 16; i++) a.bytes[i] ^= b.bytes[i];
    return a;
}

/* Blocks at an odd address, too: the second half of the memory is for the caller's use. */
static volery_block *odd(volery_block *blocks) { return (volery_block *)((uint8_t *)blocks + 1); }

/* ---- correlated OT and OT ---- */

static void cot_sender(party *self) {
    size_t n = self->n;
    volery_cot_sender *sender = NULL;
    CHECK(volery_cot_sender_new(&self->transport, &self->options, NULL, &sender) == VOLERY_OK);
    CHECK(volery_cot_sender_delta(sender, &self->key) == VOLERY_OK);
    for (int i = 0; i < 4; i++) self->blocks[i] = allocate((2 * n + 1) * 16);
    CHECK(volery_cot_sender_extend(sender, self->blocks[0], n) == VOLERY_OK);
    CHECK(volery_cot_sender_random(sender, odd(self->blocks[1]), n) == VOLERY_OK);
    CHECK(volery_cot_sender_random_chosen(sender, self->blocks[2], n) == VOLERY_OK);
    for (size_t i = 0; i < 2 * n; i++)
        for (int j = 0; j < 16; j++) odd(self->blocks[3])[i].bytes[j] = (uint8_t)(i * 31 + (size_t)j);
    CHECK(volery_cot_sender_chosen(sender, odd(self->blocks[3]), n) == VOLERY_OK);
    CHECK(volery_cot_sender_extend(sender, NULL, 0) == VOLERY_OK);
    volery_cot_sender_free(sender);
}

static void cot_receiver(party *self) {
    size_t n = self->n, bytes = (n + 7) / 8;
    volery_cot_receiver *receiver = NULL;
    CHECK(volery_cot_receiver_new(&self->transport, &self->options, &receiver) == VOLERY_OK);
    for (int i = 0; i < 4; i++) {
        self->blocks[i] = allocate((n + 1) * 16);
        self->bits[i] = allocate(bytes);
    }
    for (size_t i = 0; i < bytes; i++) self->bits[2][i] = self->bits[3][i] = (uint8_t)(i * 37 + 11);
    CHECK(volery_cot_receiver_extend(receiver, self->bits[0], self->blocks[0], n) == VOLERY_OK);
    CHECK(volery_cot_receiver_random(receiver, self->bits[1], odd(self->blocks[1]), n) == VOLERY_OK);
    CHECK(volery_cot_receiver_random_chosen(receiver, self->bits[2], self->blocks[2], n) ==
          VOLERY_OK);
    CHECK(volery_cot_receiver_chosen(receiver, self->bits[3], self->blocks[3], n) == VOLERY_OK);
    CHECK(volery_cot_receiver_extend(receiver, NULL, NULL, 0) == VOLERY_OK);
    volery_cot_receiver_free(receiver);
}

static void test_cot(size_t n, uint64_t total, uint32_t security) {
    party parties[2];
    const volery_block *v, *w;
    size_t ones = 0;
    prepare(parties, cot_sender, cot_receiver);
    for (int i = 0; i < 2; i++) {
        parties[i].n = n;
        parties[i].options.total = total;
        parties[i].options.security = security;
    }
    run(parties);
    for (size_t i = 0; i < n; i++) {
        int u = bit(parties[1].bits[0], i);
        ones += (size_t)u;
        v = &parties[0].blocks[0][i];
        volery_block expected = u ? sum(*v, parties[0].key) : *v;
        CHECK(same(&parties[1].blocks[0][i], &expected));
        for (int form = 1; form < 4; form++) {
            const volery_block *m = parties[0].blocks[form];
            m = form == 2 ? m : odd((volery_block *)m);
            w = parties[1].blocks[form];
            w = form == 1 ? odd((volery_block *)w) : w;
            u = bit(parties[1].bits[form], i);
            CHECK(same(&w[i], &m[2 * i + (size_t)u]));
            CHECK(!same(&m[2 * i], &m[2 * i + 1]));
        }
        /* Hashed: two rows do not differ by delta. */
        v = odd(parties[0].blocks[1]);
        expected = sum(v[2 * i], v[2 * i + 1]);
        CHECK(!same(&expected, &parties[0].key));
    }
    CHECK(n < 100 || (ones > n / 4 && ones < n / 4 * 3));
    clean(parties);
}

/* ---- vector OLE ---- */

static size_t width(int32_t ring) { return ring == VOLERY_GF128 ? 2 : 1; }

static void vole_sender(party *self) {
    size_t size = self->n * width(self->ring) * 8;
    volery_vole_sender *sender = NULL;
    self->words[0] = allocate(size);
    self->words[1] = allocate(size);
    CHECK(volery_vole_sender_new(&self->transport, &self->options, self->ring, &sender) ==
          VOLERY_OK);
    CHECK(volery_vole_sender_extend(sender, self->words[0], self->words[1], self->n) == VOLERY_OK);
    volery_vole_sender_free(sender);
}

static void vole_receiver(party *self) {
    const uint64_t given[2] = {0x1234567890abcdef >> 3, 77};
    size_t size = self->n * width(self->ring) * 8;
    volery_vole_receiver *receiver = NULL;
    self->words[0] = allocate(size);
    self->words[1] = allocate(16);
    CHECK(volery_vole_receiver_new(&self->transport, &self->options, self->ring,
                                   self->done ? given : NULL, &receiver) == VOLERY_OK);
    CHECK(volery_vole_receiver_x(receiver, self->words[1]) == VOLERY_OK);
    CHECK(!self->done || !memcmp(self->words[1], given, 8 * width(self->ring)));
    CHECK(volery_vole_receiver_extend(receiver, self->words[0], self->n) == VOLERY_OK);
    volery_vole_receiver_free(receiver);
}

/* a * b + c */
static void multiply_add(int32_t ring, const uint64_t *a, const uint64_t *b, const uint64_t *c,
                         uint64_t *out) {
    __extension__ typedef unsigned __int128 wide;
    const wide p = ((wide)1 << 61) - 1;
    if (ring == VOLERY_Z64) out[0] = a[0] * b[0] + c[0];
    if (ring == VOLERY_FP61) out[0] = (uint64_t)(((wide)a[0] * b[0] + c[0]) % p);
    if (ring == VOLERY_GF128) {
        wide x = (wide)a[1] << 64 | a[0], y = (wide)b[1] << 64 | b[0], z = (wide)c[1] << 64 | c[0];
        for (; y; y >>= 1) {
            if (y & 1) z ^= x;
            x = x << 1 ^ (x >> 127 ? 0x87 : 0);
        }
        out[0] = (uint64_t)z;
        out[1] = (uint64_t)(z >> 64);
    }
}

static void test_vole(int32_t ring, size_t n, uint32_t security, int given) {
    party parties[2];
    size_t words = width(ring);
    prepare(parties, vole_sender, vole_receiver);
    for (int i = 0; i < 2; i++) {
        parties[i].n = n;
        parties[i].ring = ring;
        parties[i].done = given;
        parties[i].options.security = security;
        parties[i].options.total = n;
    }
    run(parties);
    for (size_t i = 0; i < n; i++) {
        uint64_t expected[2] = {0, 0};
        multiply_add(ring, parties[0].words[0] + words * i, parties[1].words[1],
                     parties[0].words[1] + words * i, expected);
        CHECK(!memcmp(expected, parties[1].words[0] + words * i, 8 * words));
    }
    CHECK(n < 2 || memcmp(parties[0].words[0], parties[0].words[0] + words, 8));
    clean(parties);
}

/* ---- oblivious PRF ---- */

#define ITEM 6

/* Items first, first + 1, .. of ITEM bytes each. */
static volery_bytes *items(size_t first, size_t n) {
    uint8_t *data = allocate(n * ITEM);
    volery_bytes *list = allocate((n + 1) * sizeof *list);
    for (size_t i = 0; i < n; i++) {
        for (int j = 0; j < ITEM; j++) data[i * ITEM + (size_t)j] = (uint8_t)((first + i) >> 8 * j);
        list[i].data = data + i * ITEM;
        list[i].length = ITEM;
    }
    list[n].data = data; /* to free it */
    return list;
}

static void free_items(volery_bytes *list, size_t n) {
    free((void *)list[n].data);
    free(list);
}

static void oprf_sender(party *self) {
    volery_bytes *list = items(self->n / 2, self->n);
    volery_oprf_sender *sender = NULL;
    uint64_t count = 0;
    self->blocks[0] = allocate(self->n * 16);
    CHECK(volery_oprf_sender_new(&self->transport, &self->options, &sender) == VOLERY_OK);
    CHECK(volery_oprf_sender_items(sender, &count) == VOLERY_OK && count == self->n);
    CHECK(volery_oprf_sender_evaluate(sender, list, self->blocks[0], self->n) == VOLERY_OK);
    volery_oprf_sender_free(sender);
    free_items(list, self->n);
}

static void oprf_receiver(party *self) {
    volery_bytes *list = items(0, self->n);
    self->blocks[0] = allocate(self->n * 16);
    CHECK(volery_oprf_receive(&self->transport, &self->options, list, self->blocks[0], self->n) ==
          VOLERY_OK);
    free_items(list, self->n);
}

static void test_oprf(size_t n, uint32_t security) {
    party parties[2];
    prepare(parties, oprf_sender, oprf_receiver);
    for (int i = 0; i < 2; i++) {
        parties[i].n = n;
        parties[i].options.security = security;
    }
    run(parties);
    /* The sender's items begin in the middle of the receiver's. */
    for (size_t i = 0; i < n; i++) {
        const volery_block *own = &parties[0].blocks[0][i];
        if (i + n / 2 < n) CHECK(same(own, &parties[1].blocks[0][i + n / 2]));
        CHECK(n < 2 || !same(own, &parties[1].blocks[0][i < n / 2 ? i : 0]));
    }
    clean(parties);
}

/* ---- chosen choice bits, chosen strings, and a round in advance ---- */

enum { STRING = 21 };

static void chosen_sender(party *self) {
    size_t n = self->n;
    uint64_t ready = 1;
    volery_cot_sender *sender = NULL;
    CHECK(volery_cot_sender_new(&self->transport, &self->options, NULL, &sender) == VOLERY_OK);
    CHECK(volery_cot_sender_delta(sender, &self->key) == VOLERY_OK);
    self->blocks[0] = allocate((n + 1) * 16);
    for (int i = 0; i < 2; i++) {
        self->bits[i] = allocate(n * STRING);
        for (size_t j = 0; j < n * STRING; j++)
            self->bits[i][j] = (uint8_t)(j * 7 + (size_t)i * 99);
    }
    REFUSED(volery_cot_sender_chosen_bytes(sender, self->bits[0], NULL, 1, n), "ones is null");
    REFUSED(volery_cot_sender_chosen_bytes(sender, NULL, NULL, 0, 1), "length is 0");
    REFUSED(volery_cot_sender_chosen_bytes(sender, NULL, NULL, SIZE_MAX, 2), "than the memory");
    REFUSED(volery_cot_sender_prepare(sender, NULL), "ready is null");
    CHECK(volery_cot_sender_prepare(sender, &ready) == VOLERY_OK);
    self->words[0] = allocate(8);
    self->words[0][0] = ready;
    CHECK(volery_cot_sender_extend_chosen(sender, odd(self->blocks[0]), n) == VOLERY_OK);
    CHECK(volery_cot_sender_chosen_bytes(sender, self->bits[0], self->bits[1], STRING, n) ==
          VOLERY_OK);
    volery_cot_sender_free(sender);
    REFUSED(volery_cot_sender_extend(sender, self->blocks[0], n), "was freed");
    volery_cot_sender_free(sender);
    CHECK(strstr(volery_last_error(), "was freed") != NULL);
}

static void chosen_receiver(party *self) {
    size_t n = self->n, bytes = (n + 7) / 8;
    uint64_t ready = 1;
    volery_cot_receiver *receiver = NULL;
    CHECK(volery_cot_receiver_new(&self->transport, &self->options, &receiver) == VOLERY_OK);
    self->blocks[0] = allocate((n + 1) * 16);
    self->bits[0] = allocate(bytes);
    self->bits[1] = allocate(n * STRING);
    for (size_t i = 0; i < bytes; i++) self->bits[0][i] = (uint8_t)(i * 37 + 11);
    REFUSED(volery_cot_receiver_extend_chosen(receiver, NULL, self->blocks[0], 1), "x is null");
    REFUSED(volery_cot_receiver_chosen_bytes(receiver, self->bits[1], self->bits[1], 1, 1),
            "overlap");
    REFUSED(volery_cot_receiver_chosen_bytes(receiver, self->bits[0], self->bits[1], 0, 1),
            "length is 0");
    CHECK(volery_cot_receiver_prepare(receiver, &ready) == VOLERY_OK);
    self->words[0] = allocate(8);
    self->words[0][0] = ready;
    CHECK(volery_cot_receiver_extend_chosen(receiver, self->bits[0], odd(self->blocks[0]), n) ==
          VOLERY_OK);
    CHECK(volery_cot_receiver_chosen_bytes(receiver, self->bits[0], self->bits[1], STRING, n) ==
          VOLERY_OK);
    volery_cot_receiver_free(receiver);
    REFUSED(volery_cot_receiver_prepare(receiver, &ready), "was freed");
}

/* With seeds the run repeats. */
static void test_chosen(size_t n, uint64_t total, uint64_t seed) {
    party runs[2][2];
    for (int again = 0; again < 2; again++) {
        party *parties = runs[again];
        prepare(parties, chosen_sender, chosen_receiver);
        for (int i = 0; i < 2; i++) {
            parties[i].n = n;
            parties[i].options.total = total;
            parties[i].options.test_seed = seed;
        }
        run(parties);
        CHECK(parties[0].words[0][0] == parties[1].words[0][0]);
        CHECK((parties[0].words[0][0] > 0) == (total == 0));
        for (size_t i = 0; i < n; i++) {
            int x = bit(parties[1].bits[0], i);
            volery_block v = odd(parties[0].blocks[0])[i];
            v = x ? sum(v, parties[0].key) : v;
            CHECK(same(&odd(parties[1].blocks[0])[i], &v));
            CHECK(!memcmp(parties[1].bits[1] + i * STRING, parties[0].bits[x] + i * STRING,
                          STRING));
        }
    }
    CHECK(same(&runs[0][0].key, &runs[1][0].key) == (seed != 0));
    CHECK(!memcmp(odd(runs[0][1].blocks[0]), odd(runs[1][1].blocks[0]), 16 * n) == (seed != 0));
    clean(runs[0]);
    clean(runs[1]);
}

/* ---- several vector OLEs of one setup ---- */

enum { STREAMS = 3 };
static const int32_t RINGS[STREAMS] = {VOLERY_FP61, VOLERY_GF128, VOLERY_FP61};

/* Makes the streams first, then draws from each; the setup is freed in between. */
static void setup_sender(party *self) {
    volery_vole_setup_sender *setup = NULL;
    volery_vole_sender *senders[STREAMS] = {NULL}, *none = (volery_vole_sender *)self;
    uint64_t ready = 1;
    CHECK(volery_vole_setup_sender_new(&self->transport, &self->options, &setup) == VOLERY_OK);
    REFUSED(volery_vole_setup_sender_stream(setup, NULL, 9, &none), "ring is 9");
    CHECK(none == NULL);
    for (int i = 0; i < STREAMS; i++)
        CHECK(volery_vole_setup_sender_stream(setup, &self->options, RINGS[i], &senders[i]) ==
              VOLERY_OK);
    if (self->done) {
        /* The peer makes one over another ring, which ends all. */
        CHECK(volery_vole_setup_sender_stream(setup, NULL, VOLERY_GF128, &none) ==
              VOLERY_SETTINGS);
        CHECK(volery_vole_setup_sender_stream(setup, NULL, VOLERY_GF128, &none) ==
              VOLERY_SETTINGS);
    }
    volery_vole_setup_sender_free(setup);
    REFUSED(volery_vole_setup_sender_stream(setup, NULL, VOLERY_FP61, &none), "was freed");
    for (int i = 0; i < STREAMS; i++) {
        uint64_t *u = allocate(self->n * 16), *v = allocate(self->n * 16);
        if (self->done) {
            CHECK(volery_vole_sender_extend(senders[i], u, v, self->n) == VOLERY_OTHER);
        } else if (i) {
            CHECK(volery_vole_sender_prepare(senders[i], &ready) == VOLERY_OK && ready == 0);
            CHECK(volery_vole_sender_extend(senders[i], u, v, self->n) == VOLERY_OK);
            self->words[i] = u;
            self->blocks[i] = (volery_block *)v;
            u = v = NULL;
        }
        free(u);
        free(v);
        volery_vole_sender_free(senders[i]);
    }
}

static void setup_receiver(party *self) {
    const uint64_t given[2] = {41, 43};
    volery_vole_setup_receiver *setup = NULL;
    volery_vole_receiver *receivers[STREAMS] = {NULL};
    uint64_t ready = 1;
    CHECK(volery_vole_setup_receiver_new(&self->transport, &self->options, &setup) == VOLERY_OK);
    for (int i = 0; i < STREAMS; i++)
        CHECK(volery_vole_setup_receiver_stream(setup, &self->options, RINGS[i],
                                                i == 1 ? given : NULL,
                                                &receivers[i]) == VOLERY_OK);
    if (self->done) {
        volery_vole_receiver *none = NULL;
        CHECK(volery_vole_setup_receiver_stream(setup, NULL, VOLERY_FP61, NULL, &none) ==
              VOLERY_SETTINGS);
    }
    volery_vole_setup_receiver_free(setup);
    volery_vole_setup_receiver_free(setup);
    for (int i = 0; i < STREAMS; i++) {
        if (!self->done && i) {
            self->words[i] = allocate(self->n * 16);
            self->blocks[i] = allocate(16);
            CHECK(volery_vole_receiver_x(receivers[i], (uint64_t *)self->blocks[i]) == VOLERY_OK);
            CHECK(i != 1 || !memcmp(self->blocks[i], given, 16));
            CHECK(volery_vole_receiver_prepare(receivers[i], &ready) == VOLERY_OK && ready == 0);
            CHECK(volery_vole_receiver_extend(receivers[i], self->words[i], self->n) == VOLERY_OK);
        }
        volery_vole_receiver_free(receivers[i]);
    }
}

static void test_setup(int mismatch) {
    party parties[2];
    prepare(parties, setup_sender, setup_receiver);
    for (int i = 0; i < 2; i++) {
        parties[i].n = 100;
        parties[i].done = mismatch;
        parties[i].options.total = 100;
    }
    run(parties);
    for (int stream = 1; stream < STREAMS && !mismatch; stream++) {
        size_t words = width(RINGS[stream]);
        for (size_t i = 0; i < 100; i++) {
            uint64_t expected[2] = {0, 0};
            multiply_add(RINGS[stream], parties[0].words[stream] + words * i,
                         (uint64_t *)parties[1].blocks[stream],
                         (uint64_t *)parties[0].blocks[stream] + words * i, expected);
            CHECK(!memcmp(expected, parties[1].words[stream] + words * i, 8 * words));
        }
    }
    clean(parties);
}

/* ---- two objects in turns, and the caller's bytes between them ---- */

/* More than a party makes at once: the second turns take numbers that both compare. */
enum { IN_TURN = 1500 };

static void turns(party *self) {
    volery_cot_sender *sender = NULL;
    volery_cot_receiver *receiver = NULL;
    volery_block m[2 * IN_TURN];
    uint8_t u[(IN_TURN + 7) / 8], greeting[3] = {1, 2, 3}, theirs[3];
    int first = self->done;
    for (int i = 0; i < 2; i++) {
        if (i == first)
            CHECK(volery_cot_sender_new(&self->transport, &self->options, NULL, &sender) == VOLERY_OK);
        else
            CHECK(volery_cot_receiver_new(&self->transport, &self->options, &receiver) == VOLERY_OK);
        CHECK(put(&self->end, greeting, 3) == 0 && get(&self->end, theirs, 3) == 0);
        CHECK(!memcmp(greeting, theirs, 3));
    }
    for (int i = 0; i < 6; i++) {
        if (i % 2 == first)
            CHECK(volery_cot_sender_random(sender, m, IN_TURN) == VOLERY_OK);
        else
            CHECK(volery_cot_receiver_random(receiver, u, m, IN_TURN) == VOLERY_OK);
        greeting[0] = (uint8_t)i;
        CHECK(put(&self->end, greeting, 3) == 0 && get(&self->end, theirs, 3) == 0);
        CHECK(!memcmp(greeting, theirs, 3));
    }
    const char *most = self->options.total ? "0 left" : "more than the memory";
    REFUSED(volery_cot_sender_extend(sender, m, SIZE_MAX), most);
    REFUSED(volery_cot_sender_random(sender, m, SIZE_MAX / 2 + 1), most);
    REFUSED(volery_cot_receiver_random(receiver, u, m, SIZE_MAX / 16), most);
    volery_cot_sender_free(sender);
    volery_cot_receiver_free(receiver);
}

static void test_turns(uint32_t security, uint64_t total) {
    party parties[2];
    prepare(parties, turns, turns);
    parties[1].done = 1;
    for (int i = 0; i < 2; i++) {
        parties[i].options.security = security;
        parties[i].options.total = total;
    }
    run(parties);
}

/* ---- errors ---- */

/* A transport that must not be used. */
static int unused(void *context, const uint8_t *data, size_t length) {
    (void)context, (void)data, (void)length;
    CHECK(0 && "nothing is sent");
    return 1;
}

static int unused_receive(void *context, uint8_t *data, size_t length) {
    return unused(context, data, length);
}

/* The environment names a level that no processor has. */
static void test_unknown_level(void) {
    volery_transport transport = {NULL, unused, unused_receive};
    volery_cot_sender *sender = NULL;
    REFUSED(volery_cot_sender_new(&transport, NULL, NULL, &sender), "VOLERY_CPU");
    CHECK(sender == NULL);
    CHECK(strstr(volery_last_error(), "portable") != NULL);
}

static void test_usage_before_anything_is_sent(void) {
    const volery_options defaults = VOLERY_OPTIONS_INIT;
    const volery_block zero = {{0}};
    const uint64_t modulus = ((uint64_t)1 << 61) - 1;
    volery_transport transport = {NULL, unused, unused_receive};
    volery_transport half = {NULL, unused, NULL};
    volery_options options = defaults;
    volery_cot_sender *cs = (volery_cot_sender *)&options;
    volery_cot_receiver *cr = NULL;
    volery_vole_sender *vs = NULL;
    volery_vole_receiver *vr = NULL;
    volery_oprf_sender *os = NULL;
    volery_bytes item = {NULL, 3};
    volery_block block;
    uint64_t word = 0;
    struct {
        volery_options known;
        uint64_t later;
    } longer = {VOLERY_OPTIONS_INIT, 1};

    REFUSED(volery_cot_sender_new(NULL, NULL, NULL, &cs), "transport is null");
    CHECK(cs == NULL);
    REFUSED(volery_cot_sender_new(&half, NULL, NULL, &cs), "receive is null");
    REFUSED(volery_cot_sender_new(&transport, NULL, NULL, NULL), "null");
    REFUSED(volery_cot_sender_new(&transport, NULL, &zero, &cs), "delta is zero");
    REFUSED(volery_cot_receiver_new(NULL, NULL, &cr), "transport is null");
    REFUSED(volery_cot_receiver_new(&transport, NULL, NULL), "null");
    REFUSED(volery_vole_sender_new(&transport, NULL, 9, &vs), "ring is 9");
    REFUSED(volery_vole_sender_new(&transport, NULL, VOLERY_Z64, &vs), "semi-honest");
    REFUSED(volery_vole_receiver_new(&transport, NULL, VOLERY_FP61, &modulus, &vr), "modulus");
    REFUSED(volery_vole_receiver_new(&transport, NULL, VOLERY_FP61,
                                     (const uint64_t *)((const char *)&modulus + 1), &vr),
            "multiple of 8");
    REFUSED(volery_oprf_sender_new(NULL, NULL, &os), "transport is null");
    REFUSED(volery_oprf_receive(&transport, NULL, NULL, &block, 1), "items is null");
    REFUSED(volery_oprf_receive(&transport, NULL, &item, &block, 1), "item 0 is null");
    REFUSED(volery_oprf_receive(&transport, NULL, &item, NULL, 1), "outputs is null");
    REFUSED(volery_oprf_receive(NULL, NULL, &item, &block, 0), "transport is null");

    options.size = 0;
    REFUSED(volery_cot_sender_new(&transport, &options, NULL, &cs), "size is 0");
    options = defaults;
    options.security = 2;
    REFUSED(volery_cot_sender_new(&transport, &options, NULL, &cs), "security is 2");
    options = defaults;
    options.bits_per_second = -1;
    REFUSED(volery_cot_sender_new(&transport, &options, NULL, &cs), "bits_per_second");
    options = defaults;
    options.round_trip = 61;
    REFUSED(volery_cot_sender_new(&transport, &options, NULL, &cs), "round_trip");
    options = defaults;
    options.total = 5;
    REFUSED(volery_oprf_sender_new(&transport, &options, &os), "total");
    /* Of a later version: refused if it asks for something. */
    longer.known.size = sizeof longer;
    REFUSED(volery_cot_sender_new(&transport, &longer.known, NULL, &cs), "does not have");

    REFUSED(volery_cot_sender_delta(NULL, &block), "object is null");
    REFUSED(volery_cot_sender_extend(NULL, &block, 1), "object is null");
    REFUSED(volery_cot_sender_random(NULL, NULL, 0), "object is null");
    REFUSED(volery_cot_sender_random_chosen(NULL, NULL, 0), "object is null");
    REFUSED(volery_cot_sender_chosen(NULL, NULL, 0), "object is null");
    REFUSED(volery_cot_receiver_extend(NULL, NULL, NULL, 0), "object is null");
    REFUSED(volery_cot_receiver_random(NULL, NULL, NULL, 0), "object is null");
    REFUSED(volery_cot_receiver_random_chosen(NULL, NULL, NULL, 0), "object is null");
    REFUSED(volery_cot_receiver_chosen(NULL, NULL, NULL, 0), "object is null");
    REFUSED(volery_cot_sender_prepare(NULL, &word), "object is null");
    REFUSED(volery_vole_receiver_prepare(NULL, &word), "object is null");
    REFUSED(volery_vole_setup_sender_stream(NULL, NULL, VOLERY_FP61, &vs), "object is null");
    volery_vole_setup_sender *ss = NULL;
    volery_vole_setup_receiver *sr = NULL;
    REFUSED(volery_vole_setup_sender_new(NULL, NULL, &ss), "transport is null");
    REFUSED(volery_vole_setup_receiver_new(&half, NULL, &sr), "receive is null");
    volery_vole_setup_sender_free(ss);
    volery_vole_setup_receiver_free(sr);
    /* Without support for cards, or without such a card. */
    volery_cot_sender_on_device *ds = NULL;
    volery_cot_receiver_on_device *dr = NULL;
    CHECK(volery_cot_sender_on_device_new(&transport, NULL, NULL, -1, &ds) == VOLERY_USAGE);
    CHECK(volery_cot_receiver_on_device_new(&transport, NULL, -1, &dr) == VOLERY_USAGE);
    CHECK(ds == NULL && dr == NULL);
    CHECK(volery_cot_sender_on_device_delta(NULL, &block) == VOLERY_USAGE);
    CHECK(volery_cot_sender_on_device_extend(NULL, NULL, 0) == VOLERY_USAGE);
    CHECK(volery_cot_receiver_on_device_extend(NULL, NULL, NULL, 0) == VOLERY_USAGE);
    volery_cot_sender_on_device_free(NULL);
    volery_cot_receiver_on_device_free(NULL);
    REFUSED(volery_vole_sender_extend(NULL, &word, &word, 1), "object is null");
    REFUSED(volery_vole_receiver_extend(NULL, &word, 1), "object is null");
    REFUSED(volery_vole_receiver_x(NULL, &word), "object is null");
    REFUSED(volery_oprf_sender_items(NULL, &word), "object is null");
    REFUSED(volery_oprf_sender_evaluate(NULL, NULL, NULL, 0), "object is null");
    volery_cot_sender_free(NULL);
    volery_cot_receiver_free(NULL);
    volery_vole_sender_free(NULL);
    volery_vole_receiver_free(NULL);
    volery_oprf_sender_free(NULL);
}

/* An end's send that uses its object again. */
static int again(void *context) {
    end_t *end = context;
    volery_block v;
    REFUSED(volery_cot_receiver_extend(end->object, (uint8_t *)&v, &v + 1, 0), "in use");
    return 0;
}

static void usage_sender(party *self) {
    volery_block v[8], delta = {{1}};
    volery_cot_sender *sender = NULL;
    CHECK(volery_cot_sender_new(&self->transport, &self->options, &delta, &sender) == VOLERY_OK);
    REFUSED(volery_cot_sender_extend(sender, NULL, 1), "v is null");
    REFUSED(volery_cot_sender_extend(sender, v, 9), "9 correlations asked for, 8 left");
    REFUSED(volery_cot_sender_chosen(sender, NULL, 1), "messages is null");
    REFUSED(volery_cot_sender_delta(sender, NULL), "delta is null");
    CHECK(volery_cot_sender_random_chosen(sender, v, 4) == VOLERY_OK);
    CHECK(volery_cot_sender_extend(sender, v, 4) == VOLERY_OK);
    REFUSED(volery_cot_sender_extend(sender, v, 1), "1 correlations asked for, 0 left");
    CHECK(volery_cot_sender_delta(sender, v) == VOLERY_OK && v[0].bytes[0] == 1);
    volery_cot_sender_free(sender);
}

static void usage_receiver(party *self) {
    volery_block w[8];
    uint8_t u[8] = {5};
    volery_cot_receiver *receiver = NULL;
    CHECK(volery_cot_receiver_new(&self->transport, &self->options, &receiver) == VOLERY_OK);
    REFUSED(volery_cot_receiver_extend(receiver, u, NULL, 1), "w is null");
    REFUSED(volery_cot_receiver_extend(receiver, NULL, w, 1), "u is null");
    REFUSED(volery_cot_receiver_extend(receiver, w[3].bytes, w, 4), "overlap");
    REFUSED(volery_cot_receiver_chosen(receiver, w[3].bytes, w, 4), "overlap");
    self->end.during = again;
    self->end.object = receiver;
    CHECK(volery_cot_receiver_random_chosen(receiver, u, w, 4) == VOLERY_OK);
    CHECK(self->end.during == NULL);
    CHECK(volery_cot_receiver_extend(receiver, u, w, 4) == VOLERY_OK);
    volery_cot_receiver_free(receiver);
}

static void test_usage_of_objects(void) {
    party parties[2];
    prepare(parties, usage_sender, usage_receiver);
    parties[0].options.total = parties[1].options.total = 8;
    run(parties);
}

/* Parties of which one call fails: its status, and that the object goes on refusing. */
static void failing_sender(party *self) {
    size_t n = self->n;
    volery_block *v = allocate(n * 16), delta;
    volery_cot_sender *sender = NULL;
    self->status = volery_cot_sender_new(&self->transport, &self->options, NULL, &sender);
    CHECK((self->status == VOLERY_OK) == (sender != NULL));
    if (sender) {
        self->status = volery_cot_sender_extend(sender, v, n);
        CHECK(self->status != VOLERY_OK);
        for (size_t i = 0; i < 16 * n; i++) CHECK(v[i / 16].bytes[i % 16] == 0);
        CHECK(volery_cot_sender_extend(sender, v, n) == self->status);
        CHECK(strstr(volery_last_error(), "earlier call failed") != NULL);
        CHECK(volery_cot_sender_delta(sender, &delta) == self->status);
        volery_cot_sender_free(sender);
    }
    free(v);
}

static void failing_receiver(party *self) {
    size_t n = self->n;
    volery_block *w = allocate(n * 16);
    uint8_t *u = allocate((n + 7) / 8);
    volery_cot_receiver *receiver = NULL;
    self->status = volery_cot_receiver_new(&self->transport, &self->options, &receiver);
    if (receiver) {
        self->status = volery_cot_receiver_extend(receiver, u, w, n);
        /* Its last message may be the one that the peer refuses. */
        if (self->status != VOLERY_OK)
            CHECK(volery_cot_receiver_extend(receiver, u, w, n) == self->status);
        volery_cot_receiver_free(receiver);
    }
    free(u);
    free(w);
}

static void test_failures(void) {
    party parties[2];
    /* The receiver's callback fails in the middle of its setup, and of its extension. */
    const size_t places[] = {1, 5000, 20000};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        prepare(parties, failing_sender, failing_receiver);
        parties[0].n = parties[1].n = 20000;
        parties[1].end.fail_from = places[i];
        run(parties);
        CHECK(parties[0].status == VOLERY_NETWORK && parties[1].status == VOLERY_NETWORK);
    }
    /* A changed byte: of the group elements, of the extension. */
    const size_t flips[] = {4000, 20000};
    for (size_t i = 0; i < sizeof flips / sizeof *flips; i++) {
        prepare(parties, failing_sender, failing_receiver);
        parties[0].n = parties[1].n = 20000;
        parties[1].end.flip = flips[i];
        run(parties);
        CHECK(parties[0].status == VOLERY_PEER);
        CHECK(parties[1].status != VOLERY_USAGE);
    }
    /* Other settings, and the same role twice. */
    prepare(parties, failing_sender, failing_receiver);
    parties[0].n = parties[1].n = 100;
    parties[1].options.security = VOLERY_SEMI_HONEST;
    run(parties);
    CHECK(parties[0].status == VOLERY_SETTINGS && parties[1].status == VOLERY_SETTINGS);
    prepare(parties, failing_sender, failing_sender);
    run(parties);
    CHECK(parties[0].status == VOLERY_SETTINGS && parties[1].status == VOLERY_SETTINGS);
}

static void alone(party *self) {
    volery_oprf_sender *sender = NULL;
    CHECK(volery_oprf_sender_new(&self->transport, NULL, &sender) == VOLERY_NETWORK);
    CHECK(sender == NULL);
}

static void equal_items(party *self) {
    volery_block outputs[3];
    volery_bytes *list = items(0, 3);
    list[2] = list[1];
    REFUSED(volery_oprf_receive(&self->transport, NULL, list, outputs, 3), "are equal");
    free((void *)list[0].data);
    free(list);
}

static void test_equal_items(void) {
    party parties[2];
    prepare(parties, alone, equal_items);
    run(parties);
}

int main(int count, char **arguments) {
    /* With arguments: larger runs, of several rounds; planned for another link. */
    size_t n = count > 1 ? (size_t)strtoul(arguments[1], NULL, 10) : 0;
    CHECK(!strcmp(volery_version(), VOLERY_VERSION));
    CHECK(!strcmp(volery_last_error(), ""));
    if (count > 1 && !strcmp(arguments[1], "level")) {
        test_unknown_level();
        return 0;
    }
    if (count > 3) {
        bits_per_second = strtod(arguments[2], NULL);
        round_trip = strtod(arguments[3], NULL);
    }
    if (n) {
        test_cot(n, 0, VOLERY_MALICIOUS);
        test_cot(n, 4 * n, VOLERY_SEMI_HONEST);
        test_vole(VOLERY_FP61, n, VOLERY_MALICIOUS, 0);
        test_vole(VOLERY_GF128, n, VOLERY_MALICIOUS, 0);
        test_vole(VOLERY_Z64, n, VOLERY_SEMI_HONEST, 0);
        test_oprf(n, VOLERY_MALICIOUS);
        test_oprf(n, VOLERY_SEMI_HONEST);
        return 0;
    }
    test_usage_before_anything_is_sent();
    test_usage_of_objects();
    test_cot(1, 4, VOLERY_MALICIOUS);
    test_cot(1003, 0, VOLERY_MALICIOUS);
    test_cot(1003, 5000, VOLERY_SEMI_HONEST);
    for (int given = 0; given < 2; given++) {
        test_vole(VOLERY_FP61, 100, VOLERY_MALICIOUS, given);
        test_vole(VOLERY_GF128, 100, VOLERY_MALICIOUS, given);
        test_vole(VOLERY_Z64, 100, VOLERY_SEMI_HONEST, given);
    }
    test_chosen(1003, 2006, 0);
    test_chosen(1003, 2006, 7);
    test_chosen(20, 0, 0);
    test_setup(0);
    test_setup(1);
    bits_per_second = 1e7;
    round_trip = 0.05;
    test_chosen(20, 0, 7);
    test_cot(100003, 0, VOLERY_MALICIOUS);
    test_vole(VOLERY_FP61, 100000, VOLERY_MALICIOUS, 0);
    bits_per_second = round_trip = 0;
    test_oprf(0, VOLERY_MALICIOUS);
    test_oprf(500, VOLERY_MALICIOUS);
    test_oprf(500, VOLERY_SEMI_HONEST);
    for (uint32_t security = VOLERY_MALICIOUS; security <= VOLERY_SEMI_HONEST; security++) {
        test_turns(security, 0);
        test_turns(security, 3 * IN_TURN);
    }
    test_failures();
    test_equal_items();
    return 0;
}
