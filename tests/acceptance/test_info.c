/* `tenon info` of a model of 1 GiB: it reads what it shows and no weights, so it takes hardly more memory than for a small model of the
   same graph. (The time it takes: timing/info.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include <tenon/tenon.h>

#include "base/os.h"
#include "support/model_runs.h"

/* Memory of `info` for a model of `rows` MiB, in kB; 0: the file cannot be made. */
static long info_kb(int64_t rows) {
    char path[4096];
    long kb = 0;
    double ms;
    scratch_template("tenon-info", path, sizeof path);
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    if (onnx_write_big(path, rows, 1 << 18)) {
        int exit_status = command_run((const char *const[]){"info", path, NULL}, &kb, &ms);
        printf("info of %d MiB: exit status %d, %ld kB, %.1f ms\n", (int)rows, exit_status, kb, ms);
        unlink(path);
        assert_int_equal(exit_status, 0);
    }
    unlink(path);
    return kb;
}

static void a_gigabyte_takes_no_memory(void **state) {
    (void)state;
    const char *sanitize = getenv("TENON_SANITIZE");
    long small = info_kb(1), big = info_kb(1024);
    if (!small || !big || (sanitize && *sanitize)) {
        printf("skipped: %s\n", big ? "memory cannot be measured under a sanitizer" : "no sparse file of 1 GiB");
        skip();
    }
    assert_true(big <= small + 20000);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_gigabyte_takes_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
