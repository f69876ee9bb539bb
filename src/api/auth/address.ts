import ipaddr from 'ipaddr.js';
import { type Address, inNetworks } from '../../lib/networks.js';

export type CallerAddress = (peer: string | undefined, forwardedFor: string | undefined) => string;

/**
 * Reads a trusted proxy's `X-Forwarded-For` from the end: the last hop that is no trusted proxy is the caller. At a
 * malformed hop, the caller is the proxy that reported it. IPv4-mapped IPv6 addresses become IPv4; ports are dropped.
 * `unknown` without a peer (a Unix socket).
 * @throws Error for a malformed CIDR
 */
export function callerAddress(trustedProxies: readonly string[]): CallerAddress {
  const isTrusted = inNetworks(trustedProxies);
  return (peer, forwardedFor) => {
    let caller = parse(peer ?? '');
    if (caller === undefined) return 'unknown';
    if (forwardedFor === undefined) return caller.toString();
    const hops = forwardedFor.split(',');
    while (isTrusted(caller)) {
      const hop = parse(hops.pop() ?? '');
      if (hop === undefined) break;
      caller = hop;
    }
    return caller.toString();
  };
}

/**
 * The network of a connection's other side; `undefined` for a trusted proxy, behind which are many callers, and a Unix
 * socket.
 */
export function peerNetwork(trustedProxies: readonly string[]): (peer: string | undefined) => string | undefined {
  const isTrusted = inNetworks(trustedProxies);
  return (peer) => {
    const address = parse(peer ?? '');
    return address === undefined || isTrusted(address) ? undefined : networkOf(address.toString());
  };
}

/** The unit that throttling counts: an IPv4 address, or a /64 of IPv6, which one subscriber has. */
export function networkOf(address: string): string {
  return ipaddr.IPv6.isValid(address) ? ipaddr.IPv6.networkAddressFromCIDR(`${address}/64`).toString() : address;
}

/** Accepts `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`, and a zone. */
function parse(text: string): Address | undefined {
  const bare = text
    .trim()
    .replace(/^\[([^\]]*)\](?::\d+)?$/, '$1')
    .replace(/^([\d.]+):\d+$/, '$1')
    .replace(/%.*$/, '');
  return ipaddr.IPv4.isValidFourPartDecimal(bare) || ipaddr.IPv6.isValid(bare) ? ipaddr.process(bare) : undefined;
}
