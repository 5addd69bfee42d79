/* Files, mappings and folders: what is refused, what is never half-written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[64];

static const char *at(const char *name) {
    static char paths[8][256];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, 256, "%s/%s", root, name);
    return path;
}

static void put(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fwrite(text, 1, strlen(text), file);
    fclose(file);
}

static void check_content(const char *path, const char *text) {
    size_t size;
    char *bytes = tn_file_read(NULL, path, &size);
    if (!bytes)
        fail_msg("%s", tn_error_message());
    assert_int_equal(size, strlen(text));
    assert_string_equal(bytes, text);
    tn_free(NULL, bytes);
}

/* Entries of a folder; a temporary file left behind would be one more. */
static size_t entries(const char *folder) {
    char **names;
    size_t count;
    assert_int_equal(tn_folder_list(NULL, folder, &names, &count), TN_OK);
    for (size_t i = 0; i < count; i++)
        tn_free(NULL, names[i]);
    tn_free(NULL, names);
    return count;
}

static int setup(void **state) {
    (void)state;
    snprintf(root, sizeof root, "/tmp/tenon-file-XXXXXX");
    return mkdtemp(root) ? 0 : 1;
}

static int teardown(void **state) {
    char command[256];
    (void)state;
    snprintf(command, sizeof command, "chmod -R u+rwx %s; rm -rf %s", root, root);
    return system(command);
}

static void expect_refused(tn_mapping *mapping, tn_status status, const char *mentions) {
    if (mapping)
        fail_msg("'%s' was opened", tn_mapping_path(mapping));
    if (tn_error_status() != status || !strstr(tn_error_message(), mentions))
        fail_msg("status %d, message: %s (should mention %s)", tn_error_status(), tn_error_message(), mentions);
}

static void test_mapping(void **state) {
    const char *path = at("plain");
    (void)state;
    put(path, "0123456789");
    tn_heap *heap = tn_heap_create(NULL);
    tn_mapping *mapping = tn_mapping_open(heap, path);
    assert_non_null(mapping);
    assert_int_equal(tn_mapping_size(mapping), 10);
    assert_memory_equal(tn_mapping_data(mapping), "0123456789", 10);
    assert_string_equal(tn_mapping_path(mapping), path);
    assert_true(tn_mapping_unchanged(mapping));
    tn_mapping_retain(mapping);
    tn_mapping_release(mapping);
    assert_memory_equal(tn_mapping_data(mapping), "0123456789", 10);
    FILE *file = fopen(path, "ab");
    fputc('x', file);
    fclose(file);
    assert_false(tn_mapping_unchanged(mapping));
    tn_mapping_release(mapping);
    mapping = tn_mapping_open(heap, path);
    struct timespec times[2] = {{5, 0}, {5, 0}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    assert_false(tn_mapping_unchanged(mapping));
    tn_mapping_release(mapping);
    mapping = tn_mapping_open(heap, path); /* a mapping keeps what it mapped when its file is replaced */
    assert_int_equal(tn_file_write(path, "replaced", 8), TN_OK);
    assert_true(tn_mapping_unchanged(mapping));
    assert_memory_equal(tn_mapping_data(mapping), "0123456789x", 11);
    tn_mapping_release(mapping);
    put(at("empty"), "");
    mapping = tn_mapping_open(heap, at("empty"));
    assert_non_null(mapping);
    assert_int_equal(tn_mapping_size(mapping), 0);
    assert_non_null(tn_mapping_data(mapping));
    tn_mapping_release(mapping);
    tn_mapping_release(NULL);
    tn_heap_fail_at(heap, 1, true);
    assert_null(tn_mapping_open(heap, path));
    assert_int_equal(tn_error_status(), TN_ERR_MEMORY);
    assert_int_equal(tn_heap_in_use(heap), 0);
    tn_heap_destroy(heap);
}

static void make_socket(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
}

static void test_not_regular(void **state) {
    size_t size;
    (void)state;
    assert_int_equal(mkfifo(at("fifo"), 0600), 0);
    make_socket(at("socket"));
    alarm(20); /* opening a FIFO would block for ever */
    expect_refused(tn_mapping_open(NULL, at("fifo")), TN_ERR_IO, "FIFO");
    expect_refused(tn_mapping_open(NULL, at("socket")), TN_ERR_IO, "socket");
    expect_refused(tn_mapping_open(NULL, root), TN_ERR_IO, "folder");
    expect_refused(tn_mapping_open(NULL, "/dev/zero"), TN_ERR_IO, "character device");
    expect_refused(tn_mapping_open(NULL, at("none")), TN_ERR_IO, "no such file");
    expect_refused(tn_mapping_open(NULL, ""), TN_ERR_USAGE, "empty");
    expect_refused(tn_mapping_open(NULL, NULL), TN_ERR_USAGE, "empty");
    assert_null(tn_file_read(NULL, at("fifo"), &size));
    assert_null(tn_file_read(NULL, "/dev/zero", &size));
    assert_null(tn_file_read(NULL, root, &size));
    alarm(0);
}

static tn_mapping *open_inside(const char *relative) {
    return tn_mapping_open_inside(NULL, at("model"), relative, strlen(relative));
}

static void test_inside(void **state) {
    (void)state;
    assert_int_equal(tn_folder_make(at("model/sub/deep")), TN_OK);
    assert_int_equal(tn_folder_make(at("model2")), TN_OK);
    put(at("secret"), "secret");
    put(at("model2/secret"), "secret");
    put(at("model/w.bin"), "weights");
    put(at("model/sub/deep/w.bin"), "deep");
    put(at("model/..w"), "dots");
    put(at("model/hard"), "hard");
    assert_int_equal(link(at("model/hard"), at("hard_outside")), 0);
    assert_int_equal(mkfifo(at("model/fifo"), 0600), 0);
    assert_int_equal(symlink("sub/deep", at("model/to_deep")), 0);
    assert_int_equal(symlink("w.bin", at("model/to_w")), 0);
    assert_int_equal(symlink(at("model/w.bin"), at("model/to_w_absolute")), 0);
    assert_int_equal(symlink("../secret", at("model/to_secret")), 0);
    assert_int_equal(symlink("..", at("model/to_parent")), 0);
    assert_int_equal(symlink("../model2/secret", at("model/to_sibling")), 0); /* its name starts like the folder's */
    assert_int_equal(symlink("/dev/zero", at("model/to_device")), 0);
    assert_int_equal(symlink("loop", at("model/loop")), 0);
    assert_int_equal(symlink("none", at("model/dangling")), 0);
    assert_int_equal(symlink(".", at("model/dot")), 0);

    static const char *const good[][2] = {
        {"w.bin", "weights"},          {"./w.bin", "weights"},    {"sub/deep/w.bin", "deep"},
        {"sub//deep/./w.bin", "deep"}, {"to_deep/w.bin", "deep"}, {"to_w", "weights"},
        {"to_w_absolute", "weights"},  {"..w", "dots"},           {"dot/dot/w.bin", "weights"}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        tn_mapping *mapping = open_inside(good[i][0]);
        if (!mapping)
            fail_msg("%s: %s", good[i][0], tn_error_message());
        assert_int_equal(tn_mapping_size(mapping), strlen(good[i][1]));
        assert_memory_equal(tn_mapping_data(mapping), good[i][1], strlen(good[i][1]));
        assert_true(tn_mapping_unchanged(mapping));
        tn_mapping_release(mapping);
    }

    alarm(20);
    static const char *const bad[][2] = {{"", "empty"},
                                         {"/etc/passwd", "absolute"},
                                         {"C:\\w.bin", "absolute"},
                                         {"c:w.bin", "absolute"},
                                         {"\\\\host\\w.bin", "absolute"},
                                         {"..", "'..'"},
                                         {"../secret", "'..'"},
                                         {"sub/../w.bin", "'..'"},
                                         {"sub/..", "'..'"},
                                         {"sub\\..\\..\\secret", "'..'"},
                                         {"w.bin/", "folder"},
                                         {".", "folder"},
                                         {"sub", "folder"},
                                         {"dot", "folder"},
                                         {"fifo", "FIFO"},
                                         {"hard", "hard link"},
                                         {"to_secret", "symbolic link"},
                                         {"to_parent/secret", "symbolic link"},
                                         {"to_parent", "symbolic link"},
                                         {"to_sibling", "symbolic link"},
                                         {"to_device", "symbolic link"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_refused(open_inside(bad[i][0]), TN_ERR_MODEL, bad[i][1]);
        assert_non_null(strstr(tn_error_what(), bad[i][0]));
        assert_non_null(strstr(tn_error_hint(), "relative path"));
    }
    expect_refused(tn_mapping_open_inside(NULL, at("model"), "w.bin\0x", 7), TN_ERR_MODEL, "zero byte");
    expect_refused(open_inside("none"), TN_ERR_IO, "no such file");
    expect_refused(open_inside("dangling"), TN_ERR_IO, "no such file");
    expect_refused(open_inside("loop"), TN_ERR_IO, "symbolic links");
    expect_refused(open_inside("w.bin/x"), TN_ERR_IO, "not a folder");
    expect_refused(tn_mapping_open_inside(NULL, at("gone"), "w.bin", 5), TN_ERR_IO, "no such file");
    alarm(0);

    size_t size = 20000000; /* over-long names, in one part and in many */
    char *longest = malloc(size);
    memset(longest, 'a', size);
    expect_refused(tn_mapping_open_inside(NULL, at("model"), longest, size), TN_ERR_MODEL, "too long");
    expect_refused(tn_mapping_open_inside(NULL, at("model"), longest, 4090), TN_ERR_MODEL, "too long");
    expect_refused(tn_mapping_open_inside(NULL, at("model"), longest, 3000), TN_ERR_IO, "too long");
    for (size_t i = 1; i < 3000; i += 2)
        longest[i] = '/';
    expect_refused(tn_mapping_open_inside(NULL, at("model"), longest, 2999), TN_ERR_IO, "no such file");
    free(longest);

    char before[512];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(at("model")), 0); /* no folder: the current one */
    for (int i = 0; i < 3; i++) {
        tn_mapping *mapping = tn_mapping_open_inside(NULL, i == 0 ? NULL : i == 1 ? "" : ".", "w.bin", 5);
        assert_non_null(mapping);
        tn_mapping_release(mapping);
    }
    assert_int_equal(chdir(before), 0);
}

static void test_read(void **state) {
    size_t size = 0;
    (void)state;
    put(at("text"), "some text");
    check_content(at("text"), "some text");
    put(at("nothing"), "");
    check_content(at("nothing"), "");
    char *status = tn_file_read(NULL, "/proc/self/status", &size); /* says that its size is 0 */
    if (status) {
        assert_true(size > 100 && status[size] == '\0');
        tn_free(NULL, status);
    }
    tn_heap *heap = tn_heap_create(NULL);
    tn_heap_fail_at(heap, 1, true);
    assert_null(tn_file_read(heap, at("text"), &size));
    assert_int_equal(tn_error_status(), TN_ERR_MEMORY);
    if (status) {
        tn_heap_fail_at(heap, 2, true);
        assert_null(tn_file_read(heap, "/proc/self/status", &size));
    }
    assert_int_equal(tn_heap_in_use(heap), 0);
    tn_heap_destroy(heap);
}

static void test_write(void **state) {
    struct stat info;
    (void)state;
    assert_int_equal(tn_folder_make(at("out")), TN_OK);
    assert_int_equal(tn_file_write(at("out/a"), "one", 3), TN_OK);
    check_content(at("out/a"), "one");
    assert_int_equal(chmod(at("out/a"), 0640), 0);
    assert_int_equal(tn_file_write(at("out/a"), "", 0), TN_OK);
    check_content(at("out/a"), "");
    assert_int_equal(stat(at("out/a"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640); /* who may read a file stays as it was */
    umask(027);
    assert_int_equal(tn_file_write(at("out/new"), "x", 1), TN_OK);
    umask(022);
    assert_int_equal(stat(at("out/new"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    tn_file_writer *writer = tn_file_writer_begin(NULL, at("out/a"));
    assert_non_null(writer);
    assert_int_equal(tn_file_writer_write(writer, "12", 2), TN_OK);
    check_content(at("out/a"), ""); /* nothing is seen before the commit */
    assert_int_equal(tn_file_writer_write(writer, "345", 3), TN_OK);
    assert_int_equal(tn_file_writer_commit(writer), TN_OK);
    check_content(at("out/a"), "12345");
    writer = tn_file_writer_begin(NULL, at("out/a"));
    assert_int_equal(tn_file_writer_write(writer, "lost", 4), TN_OK);
    tn_file_writer_abort(writer);
    tn_file_writer_abort(NULL);
    check_content(at("out/a"), "12345");
    assert_int_equal(entries(at("out")), 2);
    assert_int_equal(tn_file_write(at("none/a"), "x", 1), TN_ERR_IO);
    assert_int_equal(tn_file_write(at("out"), "x", 1), TN_ERR_IO);
    assert_int_equal(tn_file_write(at("out/"), "x", 1), TN_ERR_IO);
    assert_int_equal(tn_file_write("", "x", 1), TN_ERR_USAGE);
    char name[256 + 4] = "out/"; /* the longest name there is: the temporary file's must not be longer */
    memset(name + 4, 'n', 255);
    char *longest = malloc(400);
    snprintf(longest, 400, "%s/%.259s", root, name);
    assert_int_equal(tn_file_write(longest, "x", 1), TN_OK);
    check_content(longest, "x");
    assert_int_equal(unlink(longest), 0);
    free(longest);
    char before[512];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(at("out")), 0);
    assert_int_equal(tn_file_write("relative", "r", 1), TN_OK);
    check_content("relative", "r");
    assert_int_equal(chdir(before), 0);
    assert_int_equal(entries(at("out")), 3);
}

static void test_write_links(void **state) {
    struct stat info;
    (void)state;
    assert_int_equal(tn_folder_make(at("links")), TN_OK);
    put(at("target"), "untouched");
    assert_int_equal(symlink("../target", at("links/soft")), 0);
    assert_int_equal(link(at("target"), at("links/hard")), 0);
    assert_int_equal(symlink("/dev/null", at("links/device")), 0);
    assert_int_equal(symlink("none", at("links/dangling")), 0);
    static const char *const names[] = {"links/soft", "links/hard", "links/device", "links/dangling"};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(tn_file_write(at(names[i]), "new", 3), TN_OK);
        check_content(at(names[i]), "new");
        assert_int_equal(lstat(at(names[i]), &info), 0);
        assert_true(S_ISREG(info.st_mode));
    }
    check_content(at("target"), "untouched");
    assert_int_equal(tn_path_kind_of(at("links/none")), TN_PATH_NONE);
    assert_int_equal(entries(at("links")), 4);
}

static void test_write_devices(void **state) {
    (void)state;
    alarm(30);
    assert_int_equal(tn_file_write("/dev/null", "x", 1), TN_OK);
    assert_int_equal(tn_path_kind_of("/dev/null"), TN_PATH_OTHER);
    if (access("/dev/full", W_OK) == 0) {
        assert_int_equal(tn_file_write("/dev/full", "x", 1), TN_ERR_IO);
        assert_non_null(strstr(tn_error_message(), "no space"));
    }
    make_socket(at("out_socket"));
    assert_int_equal(tn_file_write(at("out_socket"), "x", 1), TN_ERR_IO);
    assert_int_equal(mkfifo(at("out_fifo"), 0600), 0);
    assert_int_equal(tn_file_write(at("out_fifo"), "x", 1), TN_ERR_IO); /* no reader: an error at once */
    int reader = open(at("out_fifo"), O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    char got[8] = {0};
    assert_int_equal(tn_file_write(at("out_fifo"), "abc", 3), TN_OK);
    assert_int_equal(read(reader, got, sizeof got), 3);
    assert_string_equal(got, "abc");
    tn_file_writer *writer = tn_file_writer_begin(NULL, at("out_fifo"));
    assert_non_null(writer);
    close(reader); /* a reader that goes away is an error, not a signal */
    assert_int_equal(tn_file_writer_write(writer, "abc", 3), TN_ERR_IO);
    assert_int_equal(tn_file_writer_write(writer, "abc", 3), TN_ERR_IO);
    assert_int_equal(tn_file_writer_commit(writer), TN_ERR_IO);
    sigset_t pending;
    assert_int_equal(sigpending(&pending), 0);
    assert_int_equal(sigismember(&pending, SIGPIPE), 0);
    struct stat info;
    assert_int_equal(lstat(at("out_fifo"), &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    alarm(0);
}

/* The shell's "> file" and /dev/stdout: written to, not replaced. */
static void test_write_stdout(void **state) {
    struct stat before, after;
    (void)state;
    if (lstat("/dev/stdout", &before) != 0) {
        print_message("no /dev/stdout here: skipped\n");
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        int fd = open(at("captured"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (dup2(fd, 1) != 1 || write(1, "first ", 6) != 6)
            _exit(2);
        _exit(tn_file_write("/dev/stdout", "second", 6) == TN_OK ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    check_content(at("captured"), "first second");
    assert_int_equal(lstat("/dev/stdout", &after), 0);
    assert_true(S_ISLNK(after.st_mode) == S_ISLNK(before.st_mode) && after.st_ino == before.st_ino);
}

static void test_write_too_large(void **state) {
    struct rlimit before, small = {4096, 4096};
    static char bytes[10000];
    (void)state;
    assert_int_equal(tn_folder_make(at("full")), TN_OK);
    put(at("full/a"), "old");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    tn_status status = tn_file_write(at("full/a"), bytes, sizeof bytes);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, TN_ERR_IO);
    assert_non_null(strstr(tn_error_message(), "too large"));
    check_content(at("full/a"), "old");
    assert_int_equal(entries(at("full")), 1);
}

static void test_write_failures(void **state) {
    tn_heap *heap = tn_heap_create(NULL);
    (void)state;
    assert_int_equal(tn_folder_make(at("memory")), TN_OK);
    for (uint64_t n = 1;; n++) {
        tn_heap_fail_at(heap, n, true);
        tn_file_writer *writer = tn_file_writer_begin(heap, at("memory/a"));
        tn_heap_fail_at(heap, 0, false);
        if (writer) {
            tn_file_writer_abort(writer);
            break;
        }
        assert_int_equal(tn_error_status(), TN_ERR_MEMORY);
        assert_int_equal(tn_heap_in_use(heap), 0);
    }
    assert_int_equal(entries(at("memory")), 0);
    tn_file_writer *writer = tn_file_writer_begin(heap, at("memory/a")); /* a folder takes its place meanwhile */
    assert_int_equal(tn_folder_make(at("memory/a")), TN_OK);
    assert_int_equal(tn_file_writer_commit(writer), TN_ERR_IO);
    assert_int_equal(entries(at("memory")), 1);
    for (uint64_t n = 1;; n++) {
        char **names = NULL;
        size_t count;
        tn_heap_fail_at(heap, n, true);
        tn_status status = tn_folder_list(heap, at("memory"), &names, &count);
        tn_heap_fail_at(heap, 0, false);
        if (status == TN_OK) {
            tn_free(heap, names[0]);
            tn_free(heap, names);
            break;
        }
        assert_int_equal(status, TN_ERR_MEMORY);
        assert_int_equal(tn_heap_in_use(heap), 0);
    }
    assert_int_equal(tn_heap_in_use(heap), 0);
    tn_heap_destroy(heap);
}

static void test_folders(void **state) {
    char **names;
    size_t count;
    (void)state;
    assert_int_equal(tn_folder_make(at("list/x/y/")), TN_OK);
    assert_int_equal(tn_folder_make(at("list//x/y")), TN_OK);
    put(at("list/b"), "");
    put(at("list/a"), "");
    put(at("list/\xff"), "");
    put(at("list/B"), "");
    put(at("list/.hidden"), "");
    assert_int_equal(tn_folder_list(NULL, at("list"), &names, &count), TN_OK);
    static const char *const sorted[] = {".hidden", "B", "a", "b", "x", "\xff"};
    assert_int_equal(count, 6);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(names[i], sorted[i]);
        tn_free(NULL, names[i]);
    }
    tn_free(NULL, names);
    assert_int_equal(tn_folder_list(NULL, at("list/x/y"), &names, &count), TN_OK);
    assert_int_equal(count, 0);
    tn_free(NULL, names);
    assert_int_equal(tn_folder_list(NULL, at("list/a"), &names, &count), TN_ERR_IO);
    assert_int_equal(tn_folder_list(NULL, at("none"), &names, &count), TN_ERR_IO);
    assert_int_equal(tn_folder_make(at("list/a/z")), TN_ERR_IO);
    assert_int_equal(tn_folder_make(at("list/a")), TN_ERR_IO);
    assert_int_equal(tn_folder_make("/"), TN_OK);
    assert_int_equal(tn_folder_make(""), TN_ERR_USAGE);
    assert_int_equal(tn_path_kind_of(at("list")), TN_PATH_FOLDER);
    assert_int_equal(tn_path_kind_of(at("list/a")), TN_PATH_FILE);
    assert_int_equal(tn_path_kind_of("/dev/null"), TN_PATH_OTHER);
    assert_int_equal(tn_path_kind_of(at("list/none")), TN_PATH_NONE);
    assert_int_equal(tn_path_kind_of(NULL), TN_PATH_NONE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mapping),         cmocka_unit_test(test_not_regular),
        cmocka_unit_test(test_inside),          cmocka_unit_test(test_read),
        cmocka_unit_test(test_write),           cmocka_unit_test(test_write_links),
        cmocka_unit_test(test_write_devices),   cmocka_unit_test(test_write_stdout),
        cmocka_unit_test(test_write_too_large), cmocka_unit_test(test_write_failures),
        cmocka_unit_test(test_folders),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
