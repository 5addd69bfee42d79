/* Processors that this process may use, from fixture files; memory, time, instruction sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A fixture: files (path, content) below a root. */
typedef struct fixture {
    const char *name;
    int quota;
    const char *files[9][2];
} fixture;

#define SELF "/proc/self/cgroup"
#define CG "/sys/fs/cgroup"

static const fixture fixtures[] = {
    {"nothing", 0, {{NULL}}},
    {"v2 without a limit", 0, {{SELF, "0::/\n"}, {CG "/cpu.max", "max 100000\n"}}},
    {"v2 at the root of a container", 2, {{SELF, "0::/\n"}, {CG "/cpu.max", "150000 100000\n"}}},
    {"v2 whole", 3, {{SELF, "0::/\n"}, {CG "/cpu.max", "300000 100000\n"}}},
    {"v2 below one", 1, {{SELF, "0::/\n"}, {CG "/cpu.max", "1000 100000\n"}}},
    {"v2 nested", 1, {{SELF, "0::/a.slice/b\n"}, {CG "/a.slice/b/cpu.max", "50000 100000\n"}}},
    {"v2 the parent is stricter",
     2,
     {{SELF, "0::/a/b\n"}, {CG "/a/b/cpu.max", "800000 100000\n"}, {CG "/a/cpu.max", "200000 100000\n"}}},
    {"v2 the child is stricter",
     2,
     {{SELF, "0::/a/b\n"}, {CG "/a/b/cpu.max", "200000 100000\n"}, {CG "/a/cpu.max", "800000 100000\n"}}},
    {"v2 max inside, limit outside",
     4,
     {{SELF, "0::/a/b\n"}, {CG "/a/b/cpu.max", "max 100000\n"}, {CG "/a/cpu.max", "400000 100000\n"}}},
    {"v2 group of the host, container's mount", 2, {{SELF, "0::/docker/abc\n"}, {CG "/cpu.max", "200000 100000\n"}}},
    {"v2 group outside the namespace", 2, {{SELF, "0::/../../x\n"}, {CG "/cpu.max", "200000 100000\n"}}},
    {"v1",
     3,
     {{SELF, "5:memory:/m\n4:cpu,cpuacct:/g\n1:cpuset:/s\n"},
      {CG "/cpu,cpuacct/g/cpu.cfs_quota_us", "250000\n"},
      {CG "/cpu,cpuacct/g/cpu.cfs_period_us", "100000\n"}}},
    {"v1 at the root, other period",
     4,
     {{SELF, "4:cpu:/docker/abc\n"},
      {CG "/cpu/cpu.cfs_quota_us", "200000\n"},
      {CG "/cpu/cpu.cfs_period_us", "50000\n"}}},
    {"v1 without a limit",
     0,
     {{SELF, "4:cpu:/\n"}, {CG "/cpu/cpu.cfs_quota_us", "-1\n"}, {CG "/cpu/cpu.cfs_period_us", "100000\n"}}},
    {"v1 the parent is stricter",
     1,
     {{SELF, "4:cpuacct,cpu:/a/b\n"},
      {CG "/cpu/a/b/cpu.cfs_quota_us", "800000\n"},
      {CG "/cpu/a/b/cpu.cfs_period_us", "100000\n"},
      {CG "/cpu/a/cpu.cfs_quota_us", "100000\n"},
      {CG "/cpu/a/cpu.cfs_period_us", "100000\n"}}},
    {"v1 cpuset is not cpu",
     0,
     {{SELF, "4:cpuset:/\n"}, {CG "/cpu/cpu.cfs_quota_us", "100000\n"}, {CG "/cpu/cpu.cfs_period_us", "100000\n"}}},
    {"hybrid",
     2,
     {{SELF, "4:cpu:/g\n0::/h\n"},
      {CG "/cpu/g/cpu.cfs_quota_us", "200000\n"},
      {CG "/cpu/g/cpu.cfs_period_us", "100000\n"},
      {CG "/unified/h/cpu.max", "max 100000\n"}}},
    {"damaged", 0, {{SELF, "x\n::\n:\n0:\n0::/a"}, {CG "/cpu.max", "abc\n"}, {CG "/a/cpu.max", "5\n"}}},
    {"zero period", 0, {{SELF, "0::/\n"}, {CG "/cpu.max", "100000 0\n"}}},
    {"huge", 2147483647, {{SELF, "0::/\n"}, {CG "/cpu.max", "9223372036854775807 1\n"}}},
};

static void test_quota(void **state) {
    char root[] = "/tmp/tenon-cpu-XXXXXX", path[512], command[64];
    (void)state;
    assert_non_null(mkdtemp(root));
    for (size_t f = 0; f < sizeof fixtures / sizeof *fixtures; f++) {
        char base[64];
        snprintf(base, sizeof base, "%s/%zu", root, f);
        for (int i = 0; fixtures[f].files[i][0]; i++) {
            snprintf(path, sizeof path, "%s%s", base, fixtures[f].files[i][0]);
            char *slash = strrchr(path, '/');
            *slash = '\0';
            assert_int_equal(tn_folder_make(path), TN_OK);
            *slash = '/';
            const char *text = fixtures[f].files[i][1];
            assert_int_equal(tn_file_write(path, text, strlen(text)), TN_OK);
        }
        int quota = tn_cpu_quota(base);
        if (quota != fixtures[f].quota)
            fail_msg("%s: %d, should be %d", fixtures[f].name, quota, fixtures[f].quota);
    }
    snprintf(command, sizeof command, "rm -rf %s", root);
    assert_int_equal(system(command), 0);
}

static void test_machine(void **state) {
    (void)state;
    int count = tn_cpu_count(), quota = tn_cpu_quota("");
    assert_true(count >= 1 && (quota == 0 || count <= quota));
    size_t page = tn_page_size();
    assert_true(page >= 4096 && (page & (page - 1)) == 0);
    double before = tn_clock();
    for (int i = 0; i < 1000; i++) {
        double now = tn_clock();
        assert_true(now >= before);
        before = now;
    }
    size_t rss = tn_rss_bytes(), size = (size_t)64 << 20;
    char *block = tn_alloc(NULL, size);
    assert_non_null(block);
    memset(block, 1, size);
    size_t more = tn_rss_bytes(), peak = tn_peak_rss_bytes();
    assert_true(block[size / 2] == 1);
    tn_free(NULL, block);
    assert_true(rss > 0 && more >= rss + size / 2);
    assert_true(peak >= size);
    assert_true(tn_random_seed() != tn_random_seed());
}

static void test_isa(void **state) {
    (void)state;
    assert_true(tn_cpu_has(TN_ISA_GENERIC));
    assert_true(tn_cpu_has(tn_cpu_best()));
    assert_false(tn_cpu_has(TN_ISA_COUNT));
    assert_true(!tn_cpu_has(TN_ISA_AVX512) || tn_cpu_has(TN_ISA_AVX2)); /* a level includes those below it */
    assert_true(!tn_cpu_has(TN_ISA_AVX512_VNNI) || tn_cpu_has(TN_ISA_AVX512));
    assert_false(tn_cpu_has(TN_ISA_NEON) && tn_cpu_has(TN_ISA_AVX2));
    assert_string_equal(tn_isa_name(TN_ISA_AVX512_VNNI), "avx512_vnni");
    assert_string_equal(tn_isa_name(TN_ISA_COUNT), "unknown");
    print_message("best level here: %s\n", tn_isa_name(tn_cpu_best()));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quota),
        cmocka_unit_test(test_machine),
        cmocka_unit_test(test_isa),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
