/** The addresses that a webhook may go to (docs/decisions.md#webhook-deliveries). */
import { lookup as systemLookup, Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { type AddressRules, allowedAddresses, isPublicAddress } from '../lib/publicAddress.js';

/** Before another server is asked, ms; and how often all are. */
const RESOLVER = { timeout: 2_000, tries: 2 };

/** All addresses of a name; none: it has none. @throws UnresolvedNameError, or an error of the system */
export type Resolve = (name: string) => Promise<readonly string[]>;

/** Which addresses are connected to, and how names are resolved. */
export interface AddressPolicy {
  readonly resolve: Resolve;
  isAllowed(address: string): boolean;
}

/** The words are for the endpoint's owner, and name no address: it may be one within our own network. */
export class AddressRefusedError extends Error {
  override readonly name = 'AddressRefusedError';
}

/** No name server has answered: theirs fail, or ours, or the way there. */
export class UnresolvedNameError extends Error {
  override readonly name = 'UnresolvedNameError';
}

/**
 * The addresses of one look-up, to connect to at once: who asks for the name again may get others.
 * @param host of an URL: a name, or an address, in brackets where it is one of IPv6
 * @throws AddressRefusedError where any of them is not allowed, or there is none; what `resolve` throws
 */
export async function checkedAddresses(
  { resolve, isAllowed }: AddressPolicy,
  host: string,
): Promise<readonly string[]> {
  const name = host.replace(/^\[|\]$/g, '');
  const addresses = isIP(name) === 0 ? await resolve(name) : [name];
  if (addresses.length === 0) throw new AddressRefusedError('its name has no address');
  if (!addresses.every(isAllowed)) throw new AddressRefusedError('its address is not public');
  return addresses;
}

/** What the rules allow. Public names are resolved by DNS alone. */
export function addressPolicy(rules: AddressRules): AddressPolicy {
  const isAllowed = allowedAddresses(rules);
  return rules.privateAddresses ? anyAddresses(isAllowed) : publicAddresses(undefined, isAllowed);
}

/** By DNS alone: no name of this machine or its network, and no thread that a name server keeps waiting. */
export function publicAddresses(
  resolver: Pick<Resolver, 'resolve4' | 'resolve6'> = new Resolver(RESOLVER),
  isAllowed: AddressPolicy['isAllowed'] = isPublicAddress,
): AddressPolicy {
  return {
    isAllowed,
    async resolve(name) {
      const found = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
      const addresses = found.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
      const isUnknown = found.some((answer) => answer.status === 'rejected' && !isAnswer(answer.reason));
      if (addresses.length === 0 && isUnknown) throw new UnresolvedNameError('its name can not be resolved');
      return addresses;
    },
  };
}

/** There is no such name, it has no such address, or can be no name. Others are failures of name servers. */
const isAnswer = (reason: unknown): boolean =>
  ['ENOTFOUND', 'ENODATA', 'EBADNAME'].includes((reason as NodeJS.ErrnoException).code ?? '');

/** For development: as every program of this machine finds them. */
export function anyAddresses(isAllowed: AddressPolicy['isAllowed'] = () => true): AddressPolicy {
  return {
    isAllowed,
    resolve: async (name) => (await systemLookup(name, { all: true })).map(({ address }) => address),
  };
}
