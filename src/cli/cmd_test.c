/* tenon test: each folder in a process of its own, so that a crash or a hang is the failure of one test. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "base/number.h"
#include "base/os.h"
#include "cli/cli.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/test_find.h"

#define DEFAULT_TIMEOUT 300 /* seconds */

typedef struct verdict {
    bool done;
    tn_test_result result;
    char *why; /* NULL: nothing to say */
} verdict;

/* A child process. pid 0: the slot is free. */
typedef struct worker {
    pid_t pid;
    int fd; /* its answer: tn_test_result, then the reason */
    uint32_t test;
    double start;
    bool late;
    tn_text answer;
} worker;

typedef struct testing {
    const tn_cli_options *options;
    tn_test_list tests;
    verdict *verdicts;
    worker *workers;
    uint32_t jobs, next, reported, done;
    int threads; /* of each */
    double timeout;
    uint32_t passed, failed, skipped, unsupported, random;
    tn_progress progress;
    tn_text out;
} testing;

static const char *const outcome_names[] = {"passed", "failed", "skipped"};

/* ---- children ---- */

static void child(const testing *t, uint32_t test, int fd) {
    struct rlimit no_core = {0, 0};
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    setrlimit(RLIMIT_CORE, &no_core);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    tn_test_result result;
    tn_text why;
    tn_text_init(&why, NULL);
    tn_test_folder(t->options, &t->tests.data[test], t->threads, &result, &why);
    const char *parts[] = {(const char *)&result, why.data ? why.data : ""};
    size_t sizes[] = {sizeof result, why.len};
    for (int i = 0; i < 2; i++)
        for (size_t at = 0; at < sizes[i];) {
            ssize_t n = write(fd, parts[i] + at, sizes[i] - at);
            if (n < 0 && errno == EINTR)
                continue;
            if (n <= 0)
                _exit(1);
            at += (size_t)n;
        }
    _exit(0);
}

static tn_status start(testing *t, worker *w, uint32_t test) {
    int ends[2];
    if (pipe(ends) != 0)
        return tn_fail(TN_ERR_IO, "cannot make a pipe");
    pid_t pid = fork();
    if (pid < 0) {
        close(ends[0]);
        close(ends[1]);
        return tn_fail(TN_ERR_IO, "cannot start a process");
    }
    if (pid == 0) {
        close(ends[0]);
        for (uint32_t i = 0; i < t->jobs; i++)
            if (t->workers[i].pid)
                close(t->workers[i].fd);
        child(t, test, ends[1]);
    }
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    *w = (worker){.pid = pid, .fd = ends[0], .test = test, .start = tn_clock()};
    tn_text_init(&w->answer, NULL);
    return TN_OK;
}

static const char *signal_name(int number) {
    switch (number) {
    case SIGSEGV: return "SIGSEGV, a wrong memory access";
    case SIGBUS: return "SIGBUS, a wrong memory access";
    case SIGABRT: return "SIGABRT, it gave up";
    case SIGFPE: return "SIGFPE, an arithmetic error";
    case SIGILL: return "SIGILL, an unknown instruction";
    case SIGKILL: return "SIGKILL, killed from outside (out of memory?)";
    case SIGTERM: return "SIGTERM";
    default: return "a signal";
    }
}

/* Turns the child's answer, or the lack of one, into a verdict. */
static tn_status finish(testing *t, worker *w) {
    verdict *v = &t->verdicts[w->test];
    int state = 0;
    while (waitpid(w->pid, &state, 0) < 0 && errno == EINTR) {
    }
    close(w->fd);
    tn_text why;
    tn_text_init(&why, NULL);
    if (w->late) {
        tn_text_printf(&why, "no answer within %d s", (int)t->timeout);
    } else if (WIFSIGNALED(state)) {
        tn_text_printf(&why, "killed by signal %d (%s)", WTERMSIG(state), signal_name(WTERMSIG(state)));
    } else if (w->answer.len < sizeof v->result) {
        tn_text_printf(&why, "ended without an answer, exit status %d", WEXITSTATUS(state));
    } else {
        memcpy(&v->result, w->answer.data, sizeof v->result);
        tn_text_bytes(&why, w->answer.data + sizeof v->result, w->answer.len - sizeof v->result);
    }
    if (w->late || WIFSIGNALED(state) || w->answer.len < sizeof v->result)
        v->result = (tn_test_result){.outcome = TN_TEST_FAILED, .ms = 1e3 * (tn_clock() - w->start)};
    bool failed = why.failed || w->answer.failed;
    if (why.len)
        v->why = why.data;
    else
        tn_text_free(&why);
    v->done = true;
    t->done++;
    tn_text_free(&w->answer);
    w->pid = 0;
    return failed ? TN_ERR_MEMORY : TN_OK;
}

static tn_status receive(testing *t, worker *w) {
    char block[4096];
    for (;;) {
        ssize_t n = read(w->fd, block, sizeof block);
        if (n > 0)
            tn_text_bytes(&w->answer, block, (size_t)n);
        else if (n == 0)
            return finish(t, w);
        else if (errno != EINTR)
            return errno == EAGAIN ? TN_OK : finish(t, w);
    }
}

static void kill_all(testing *t) {
    for (uint32_t i = 0; i < t->jobs; i++)
        if (t->workers[i].pid) {
            kill(t->workers[i].pid, SIGKILL);
            while (waitpid(t->workers[i].pid, NULL, 0) < 0 && errno == EINTR) {
            }
            close(t->workers[i].fd);
            tn_text_free(&t->workers[i].answer);
            t->workers[i].pid = 0;
        }
}

/* Waits for answers, at most a tenth of a second. */
static tn_status wait_some(testing *t) {
    struct pollfd *fds = tn_alloc_array(NULL, t->jobs, sizeof *fds);
    if (!fds)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < t->jobs; i++)
        fds[i] = (struct pollfd){.fd = t->workers[i].pid ? t->workers[i].fd : -1, .events = POLLIN};
    tn_status status = TN_OK;
    if (poll(fds, t->jobs, 100) > 0)
        for (uint32_t i = 0; i < t->jobs && status == TN_OK; i++)
            if (fds[i].revents)
                status = receive(t, &t->workers[i]);
    for (uint32_t i = 0; i < t->jobs && status == TN_OK; i++) {
        worker *w = &t->workers[i];
        if (w->pid && tn_clock() - w->start > t->timeout) {
            w->late = true;
            kill(w->pid, SIGKILL);
            status = finish(t, w);
        }
    }
    tn_free(NULL, fds);
    return status;
}

/* ---- reporting ---- */

static void count(testing *t, const tn_test_result *r) {
    t->passed += r->outcome == TN_TEST_PASSED;
    t->failed += r->outcome == TN_TEST_FAILED;
    t->skipped += r->outcome == TN_TEST_SKIPPED;
    t->unsupported += r->outcome == TN_TEST_FAILED && r->unsupported;
    t->random += r->outcome == TN_TEST_PASSED && r->random;
}

static void put_line(testing *t, const char *folder, const verdict *v) {
    static const char *const labels[] = {"PASS", "FAIL", "SKIP"};
    static const char *const colors[] = {"\033[32m", "\033[31m", "\033[33m"};
    bool color = tn_cli_color(1);
    tn_text_printf(&t->out, "%s%s%s %s", color ? colors[v->result.outcome] : "", labels[v->result.outcome],
                   color ? "\033[0m" : "", folder);
    if (v->why)
        tn_text_printf(&t->out, ": %s", v->why);
    else if (v->result.outcome == TN_TEST_PASSED)
        tn_text_printf(&t->out, " (%" PRIu32 " data sets, %" PRId64 " ms)", v->result.data_sets, (int64_t)v->result.ms);
    tn_text_add(&t->out, "\n");
}

static void put_json(testing *t, const char *folder, const verdict *v) {
    tn_text *out = &t->out;
    tn_text_add(out, t->reported ? ",\n  {\"name\": " : "\n  {\"name\": ");
    tn_text_json(out, folder, strlen(folder));
    tn_text_printf(out, ", \"outcome\": \"%s\"", outcome_names[v->result.outcome]);
    if (v->why) {
        tn_text_add(out, ", \"reason\": ");
        tn_text_json(out, v->why, strlen(v->why));
    }
    tn_text_printf(out, ", \"not_supported\": %s, \"by_shape\": %s, \"data_sets\": %" PRIu32 ", \"ms\": ",
                   v->result.unsupported ? "true" : "false", v->result.random ? "true" : "false", v->result.data_sets);
    tn_cli_json_f64(out, v->result.ms);
    tn_text_printf(out, ", \"rss_growth_bytes\": %" PRIu64 "}", (uint64_t)v->result.rss_growth);
}

/* Reports what is done, in the order of the folders. */
static tn_status report(testing *t) {
    const tn_cli_options *o = t->options;
    for (; t->reported < t->tests.len && t->verdicts[t->reported].done; t->reported++) {
        const verdict *v = &t->verdicts[t->reported];
        const char *folder = t->tests.data[t->reported].folder;
        count(t, &v->result);
        if (o->json)
            put_json(t, folder, v);
        else if (o->verbose || (!o->quiet && v->result.outcome != TN_TEST_PASSED))
            put_line(t, folder, v);
    }
    if (o->json || (!t->out.len && !t->out.failed))
        return TN_OK;
    tn_progress_clear(&t->progress);
    return tn_cli_put(&t->out);
}

static tn_status put_totals(testing *t) {
    tn_text *out = &t->out;
    if (t->options->json)
        tn_text_printf(out,
                       "],\n \"passed\": %" PRIu32 ", \"failed\": %" PRIu32 ", \"skipped\": %" PRIu32
                       ", \"not_supported\": %" PRIu32 ", \"by_shape\": %" PRIu32 "}\n",
                       t->passed, t->failed, t->skipped, t->unsupported, t->random);
    else {
        tn_text_printf(
            out, "%" PRIu32 " passed, %" PRIu32 " failed, %" PRIu32 " skipped\nof which not supported: %" PRIu32 "\n",
            t->passed, t->failed, t->skipped, t->unsupported);
        if (t->random)
            tn_text_printf(out, "judged by shape and type, because they are random: %" PRIu32 "\n", t->random);
    }
    return tn_cli_put(out);
}

static tn_status skip(verdict *v) {
    v->result = (tn_test_result){.outcome = TN_TEST_SKIPPED};
    v->why = tn_strdup(NULL, "the model that data.json names is not in a light/ folder here");
    v->done = true;
    return v->why ? TN_OK : TN_ERR_MEMORY;
}

static tn_status run_tests(testing *t) {
    tn_progress_start(&t->progress, t->tests.len, !t->options->quiet && !t->options->json);
    if (t->options->json)
        tn_text_add(&t->out, "{\"tests\": [");
    tn_status status = TN_OK;
    while (status == TN_OK && t->reported < t->tests.len && !tn_cli_interrupted()) {
        for (uint32_t i = 0; i < t->jobs && t->next < t->tests.len && status == TN_OK; i++) {
            if (t->workers[i].pid)
                continue;
            uint32_t test = t->next++;
            if (t->tests.data[test].model) {
                status = start(t, &t->workers[i], test);
            } else {
                status = skip(&t->verdicts[test]);
                t->done++;
            }
        }
        if (status == TN_OK && t->done < t->next)
            status = wait_some(t);
        if (status == TN_OK)
            status = report(t);
        tn_progress_update(&t->progress, t->done);
    }
    tn_progress_clear(&t->progress);
    kill_all(t);
    return status == TN_OK && !tn_cli_interrupted() ? put_totals(t) : status;
}

tn_status tn_cli_test(const tn_cli_options *options) {
    testing t = {.options = options, .timeout = options->timeout ? (double)options->timeout : DEFAULT_TIMEOUT};
    int cpus = tn_cpu_count();
    t.jobs = options->jobs ? (uint32_t)options->jobs : options->limits ? 1 : (uint32_t)cpus;
    t.jobs = t.jobs > 256 ? 256 : t.jobs;
    t.threads = t.jobs < (uint32_t)cpus ? cpus / (int)t.jobs : 1;
    tn_text_init(&t.out, NULL);
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < options->args.len && status == TN_OK; i++)
        status = tn_test_find(options->args.data[i], options->filter, &t.tests);
    if (status == TN_OK && t.tests.len == 0) {
        status = tn_fail(TN_ERR_USAGE, "no test folder %s'%s'", options->filter ? "matches in " : "in ",
                         options->args.data[0]);
        tn_fail_hint("a test folder holds model.onnx and test_data_set_0");
    }
    t.verdicts = tn_alloc_array(NULL, (size_t)t.tests.len + 1, sizeof *t.verdicts);
    t.workers = tn_alloc_array(NULL, t.jobs, sizeof *t.workers);
    if (!t.verdicts || !t.workers)
        status = TN_ERR_MEMORY;
    if (status == TN_OK) {
        tn_cli_interrupt_hold();
        status = run_tests(&t);
        tn_cli_interrupt_release();
    }
    if (status == TN_OK && t.failed) {
        tn_error_clear();
        status = TN_ERR_FAILED; /* the report has said it: no message */
    }
    for (uint32_t i = 0; t.verdicts && i < t.tests.len; i++)
        tn_free(NULL, t.verdicts[i].why);
    tn_free(NULL, t.verdicts);
    tn_free(NULL, t.workers);
    tn_text_free(&t.out);
    tn_test_list_free(&t.tests);
    return status;
}
