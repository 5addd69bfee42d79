/* Processors, memory in use and time. */
#define _GNU_SOURCE
#include "base/number.h"
#include "base/os.h"
#include "base/os_posix.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <sched.h>
#endif
#if defined(__APPLE__)
#include <mach/mach.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif

double tn_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

uint64_t tn_ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    return (uint64_t)(tn_clock() * 1e9);
#endif
}

uint64_t tn_memory_bytes(void) {
    long pages = sysconf(_SC_PHYS_PAGES);
    return pages > 0 ? (uint64_t)pages * tn_page_size() : 0;
}

size_t tn_page_size(void) {
    long size = sysconf(_SC_PAGESIZE);
    return size > 0 ? (size_t)size : 4096;
}

/* Reads a small text file whole, NUL-terminated; its length, or -1. What does not fit is left out. */
static long long read_text(const char *path, char *text, size_t cap) {
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    long long length = tn_read_all(fd, text, cap - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    return length;
}

/* ---- how many processors ---- */

/* Parses an integer of a text that may be followed by white space. */
static bool parse_integer(const char *text, int64_t *value, const char **after) {
    size_t used;
    while (*text == ' ')
        text++;
    if (!tn_parse_i64(text, strlen(text), value, &used))
        return false;
    *after = text + used;
    return true;
}

/* Processors that a quota of `quota` microseconds in each `period` is worth, rounded up; 0: no quota. */
static int quota_of(int64_t quota, int64_t period) {
    if (quota <= 0 || period <= 0)
        return 0;
    int64_t count = quota / period + (quota % period != 0);
    return count > INT_MAX ? INT_MAX : (int)count;
}

/* cpu.max of version 2: "max 100000" or "150000 100000". */
static int read_quota_v2(const char *folder) {
    char path[PATH_MAX], text[128];
    int64_t quota, period;
    const char *at;
    if (snprintf(path, sizeof path, "%s/cpu.max", folder) >= (int)sizeof path ||
        read_text(path, text, sizeof text) <= 0)
        return 0;
    return parse_integer(text, &quota, &at) && parse_integer(at, &period, &at) ? quota_of(quota, period) : 0;
}

static int read_quota_v1(const char *folder) {
    char path[PATH_MAX], text[128];
    int64_t value[2];
    static const char *const names[2] = {"cpu.cfs_quota_us", "cpu.cfs_period_us"};
    const char *at;
    for (int i = 0; i < 2; i++)
        if (snprintf(path, sizeof path, "%s/%s", folder, names[i]) >= (int)sizeof path ||
            read_text(path, text, sizeof text) <= 0 || !parse_integer(text, &value[i], &at))
            return 0;
    return quota_of(value[0], value[1]);
}

static int smaller_quota(int a, int b) {
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* The smallest quota of a group and of those around it: from <mount><group> up to <mount>. Below, a container often sees
   its own group as the mount itself, so levels that do not exist are passed over. */
static int walk_quota(const char *mount, const char *group, size_t group_length,
                      int (*read_quota)(const char *folder)) {
    char folder[PATH_MAX];
    size_t base = strlen(mount);
    int quota = 0;
    if (base >= sizeof folder)
        return 0;
    memcpy(folder, mount, base + 1);
    if (base + group_length < sizeof folder && !memmem(group, group_length, "..", 2)) {
        memcpy(folder + base, group, group_length);
        base += group_length;
        folder[base] = '\0';
    }
    for (;;) {
        quota = smaller_quota(quota, read_quota(folder));
        char *slash = strrchr(folder + strlen(mount), '/');
        if (!slash)
            return quota;
        *slash = '\0';
    }
}

/* Whether a comma-separated list holds `word`. */
static bool list_has(const char *list, size_t length, const char *word) {
    size_t size = strlen(word);
    for (size_t i = 0; i + size <= length; i++)
        if ((i == 0 || list[i - 1] == ',') && memcmp(list + i, word, size) == 0 &&
            (i + size == length || list[i + size] == ','))
            return true;
    return false;
}

int tn_cpu_quota(const char *root) {
    static const char *const mounts_v2[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    static const char *const mounts_v1[] = {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct",
                                            "/sys/fs/cgroup/cpuacct,cpu"};
    char path[PATH_MAX], groups[16384];
    int quota = 0;
    if (snprintf(path, sizeof path, "%s/proc/self/cgroup", root) >= (int)sizeof path ||
        read_text(path, groups, sizeof groups) < 0)
        return 0;
    for (const char *line = groups; *line;) { /* "4:cpu,cpuacct:/docker/abc" or "0::/user.slice" */
        size_t length = strcspn(line, "\n");
        const char *first = memchr(line, ':', length);
        const char *second = first ? memchr(first + 1, ':', length - (size_t)(first + 1 - line)) : NULL;
        if (second) {
            const char *group = second + 1;
            size_t group_length = length - (size_t)(group - line);
            bool v2 = second == first + 1;
            bool v1 = !v2 && list_has(first + 1, (size_t)(second - first - 1), "cpu");
            const char *const *mounts = v2 ? mounts_v2 : mounts_v1;
            for (int i = 0; i < (v2 ? 2 : v1 ? 3 : 0); i++)
                if (snprintf(path, sizeof path, "%s%s", root, mounts[i]) < (int)sizeof path)
                    quota =
                        smaller_quota(quota, walk_quota(path, group, group_length, v2 ? read_quota_v2 : read_quota_v1));
        }
        line += length + (line[length] == '\n');
    }
    return quota;
}

static int affinity_count(void) {
#if defined(__linux__)
    unsigned long mask[1024 / sizeof(unsigned long) * 8] = {0}; /* 65536 processors: more than the kernel allows */
    if (sched_getaffinity(0, sizeof mask, (cpu_set_t *)(void *)mask) == 0) {
        int count = 0;
        for (size_t i = 0; i < sizeof mask / sizeof *mask; i++)
            count += __builtin_popcountl(mask[i]);
        if (count > 0)
            return count;
    }
#endif
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 && online < INT_MAX ? (int)online : 1;
}

int tn_cpu_count(void) {
    int count = affinity_count(), quota = tn_cpu_quota("");
    return quota > 0 && quota < count ? quota : count;
}

/* ---- memory in use ---- */

#if defined(__linux__)
/* A line "VmHWM:	  1234 kB" of /proc/self/status in bytes; 0 if it is not there. */
static size_t status_bytes(const char *name) {
    char text[8192];
    int64_t kilobytes;
    const char *line = read_text("/proc/self/status", text, sizeof text) > 0 ? strstr(text, name) : NULL;
    if (!line)
        return 0;
    line += strlen(name);
    line += strspn(line, "\t ");
    return parse_integer(line, &kilobytes, &line) && kilobytes > 0 ? (size_t)kilobytes * 1024 : 0;
}
#endif

size_t tn_rss_bytes(void) {
#if defined(__linux__)
    char text[256];
    int64_t pages = 0;
    const char *at;
    if (read_text("/proc/self/statm", text, sizeof text) > 0 && parse_integer(text, &pages, &at) &&
        parse_integer(at, &pages, &at) && pages > 0)
        return (size_t)pages * tn_page_size();
    return status_bytes("VmRSS:");
#elif defined(__APPLE__)
    struct mach_task_basic_info info;
    mach_msg_type_number_t count = MACH_TASK_BASIC_INFO_COUNT;
    if (task_info(mach_task_self(), MACH_TASK_BASIC_INFO, (task_info_t)&info, &count) != KERN_SUCCESS)
        return 0;
    return info.resident_size;
#else
    return 0;
#endif
}

size_t tn_peak_rss_bytes(void) {
    struct rusage usage;
#if defined(__linux__)
    size_t peak = status_bytes("VmHWM:"); /* getrusage would include what ran before exec */
    if (peak)
        return peak;
    const size_t unit = 1024;
#else
    const size_t unit = 1;
#endif
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (size_t)usage.ru_maxrss * unit : 0;
}

/* ---- instruction sets ---- */

#if defined(__x86_64__)
static bool has_f16c(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c >> 29 & 1);
}
#endif

bool tn_cpu_has(tn_isa isa) {
    switch (isa) {
    case TN_ISA_GENERIC: return true;
#if defined(__x86_64__)
    case TN_ISA_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
               __builtin_cpu_supports("bmi2") && has_f16c();
    case TN_ISA_AVX512:
        return tn_cpu_has(TN_ISA_AVX2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512cd");
    case TN_ISA_AVX512_VNNI: return tn_cpu_has(TN_ISA_AVX512) && __builtin_cpu_supports("avx512vnni");
#endif
#if defined(__aarch64__)
    case TN_ISA_NEON: return true;
#endif
    default: return false;
    }
}

tn_isa tn_cpu_best(void) {
    for (int isa = TN_ISA_COUNT - 1; isa > TN_ISA_GENERIC; isa--)
        if (tn_cpu_has((tn_isa)isa))
            return (tn_isa)isa;
    return TN_ISA_GENERIC;
}

const char *tn_isa_name(tn_isa isa) {
    static const char *const names[TN_ISA_COUNT] = {"generic", "avx2", "avx512", "avx512_vnni", "neon"};
    size_t index = (size_t)isa;
    return index < TN_ISA_COUNT ? names[index] : "unknown";
}
