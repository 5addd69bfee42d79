/* The command: help, version, exit codes. */
#define _GNU_SOURCE
#include <string.h>

#include "base/os.h"
#include "cli/cli.h"

static void version(tn_text *out) {
    tn_text_printf(out, "tenon %s\nbuild:", tn_version());
#if defined(__clang__)
    tn_text_printf(out, " clang %d.%d.%d", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
    tn_text_printf(out, " gcc %d.%d.%d", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
#ifdef NDEBUG
    tn_text_add(out, ", release");
#else
    tn_text_add(out, ", with assertions");
#endif
#if defined(__SANITIZE_ADDRESS__)
    tn_text_add(out, ", address sanitizer");
#endif
#if defined(__SANITIZE_THREAD__)
    tn_text_add(out, ", thread sanitizer");
#endif
    tn_text_add(out, "\nCPU features:");
    for (int i = 0; i < TN_ISA_COUNT; i++)
        if (tn_cpu_has((tn_isa)i))
            tn_text_printf(out, " %s%s", tn_isa_name((tn_isa)i), (tn_isa)i == tn_cpu_best() ? " (in use)" : "");
    tn_text_printf(out, "\nCPUs: %d\n", tn_cpu_count());
}

int main(int argc, char **argv) {
    tn_cli_signals_init();
    tn_cli_options options;
    tn_text out;
    tn_text_init(&out, NULL);
    tn_status status = tn_cli_parse(argc, argv, &options);
    if (status == TN_OK && options.version)
        version(&out);
    else if (status == TN_OK && options.help)
        tn_cli_help(options.command, &out);
    else if (status == TN_OK) {
        tn_heap_set_limit(tn_heap_default(), options.max_bytes < SIZE_MAX ? (size_t)options.max_bytes : SIZE_MAX);
        if (options.memory && (options.heap = tn_heap_create(NULL)) == NULL)
            status = tn_error_status();
        else if (options.memory)
            tn_heap_set_limit(options.heap, options.memory < SIZE_MAX ? (size_t)options.memory : SIZE_MAX);
        if (status == TN_OK)
            status = tn_cli_plugins_load(&options);
        if (status == TN_OK)
            status = options.command->run(&options);
        if (status != TN_OK)
            tn_cli_say_limit(&options);
    }
    if (status == TN_OK && (out.len || out.failed))
        status = tn_cli_put(&out);
    tn_text_free(&out);
    tn_op_set_destroy(options.op_set);
    tn_heap_destroy(options.heap);
    tn_cli_options_free(&options);
    if (status == TN_OK)
        return 0;
    return tn_error_status() == TN_OK ? tn_cli_exit_code(status) : tn_cli_report();
}
