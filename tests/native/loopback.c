/* Preloaded into a server that can only listen on every interface: it listens on this machine alone.
 * cc -shared -fPIC -O2 -o loopback.so loopback.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

typedef int (*bind_function)(int, const struct sockaddr *, socklen_t);

int bind(int socket, const struct sockaddr *address, socklen_t length) {
  bind_function next = (bind_function)dlsym(RTLD_NEXT, "bind");
  if (address->sa_family == AF_INET && length >= sizeof(struct sockaddr_in)) {
    struct sockaddr_in local;
    memcpy(&local, address, sizeof local);
    if (local.sin_addr.s_addr == htonl(INADDR_ANY))
      local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return next(socket, (const struct sockaddr *)&local, sizeof local);
  }
  if (address->sa_family == AF_INET6 && length >= sizeof(struct sockaddr_in6)) {
    struct sockaddr_in6 local;
    memcpy(&local, address, sizeof local);
    if (IN6_IS_ADDR_UNSPECIFIED(&local.sin6_addr))
      local.sin6_addr = in6addr_loopback;
    return next(socket, (const struct sockaddr *)&local, sizeof local);
  }
  return next(socket, address, length);
}
