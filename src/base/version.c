/* The library's version. */
#include <tenon/api.h>

#define TN_TEXT_OF_(x) #x
#define TN_TEXT_OF(x) TN_TEXT_OF_(x)

const char *tn_version(void) {
    return TN_TEXT_OF(TN_VERSION_MAJOR) "." TN_TEXT_OF(TN_VERSION_MINOR) "." TN_TEXT_OF(TN_VERSION_PATCH);
}
