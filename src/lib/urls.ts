/** The http address of a host and port, without a trailing slash; an IPv6 host is put in brackets. */
export function addressOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The path of an address, without a trailing slash; empty at the root of the host. */
export const basePathOf = (address: string): string => new URL(address).pathname.replace(/\/+$/, '');
