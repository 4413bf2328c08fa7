// The transport of ranks that are threads.
#include "comm/collective_cases.h"
#include "comm/failure_cases.h"
#include "comm/host_cases.h"
#include "comm/message_cases.h"
