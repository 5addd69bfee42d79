/* The library's version. */
#include <tenon/api.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const char *tn_version(void) {
    return TEXT(TN_VERSION_MAJOR) "." TEXT(TN_VERSION_MINOR) "." TEXT(TN_VERSION_PATCH);
}
