import ipaddr from 'ipaddr.js';

export type Address = ipaddr.IPv4 | ipaddr.IPv6;

/**
 * Whether one of the networks contains an address. A network of IPv4 addresses mapped into IPv6 counts as the IPv4
 * network.
 * @throws Error for a malformed CIDR
 */
export function inNetworks(cidrs: readonly string[]): (address: Address) => boolean {
  const networks = cidrs.map(normalisedNetwork);
  return (address) => networks.some((network) => network[0].kind() === address.kind() && address.match(network));
}

function normalisedNetwork(cidr: string): ReturnType<typeof ipaddr.parseCIDR> {
  const [address, bits] = ipaddr.parseCIDR(cidr);
  return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() && bits >= 96
    ? [address.toIPv4Address(), bits - 96]
    : [address, bits];
}
