/* A shared library that is no plugin. */
int tests_plugin_none(void);
int tests_plugin_none(void) {
    return 1;
}
