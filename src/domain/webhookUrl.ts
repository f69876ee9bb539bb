/** Where webhooks may go (docs/decisions.md#webhook-endpoints). The host of a name is looked at when it is resolved. */
import { type AddressRules, allowedAddresses } from '../lib/publicAddress.js';

export const LONGEST_URL = 2_048;

/**
 * What is wrong, in words that follow the field's name; `undefined`: nothing. Where private addresses are allowed, for
 * development, `http://` is as well.
 */
export function webhookUrlFault(text: string, rules: AddressRules): string | undefined {
  if (text.length > LONGEST_URL) return `: at most ${LONGEST_URL} characters`;
  // What a parser of addresses would pass over or mend.
  if (!/^[!-[\]-~]+$/.test(text) || !URL.canParse(text)) return 'must be an address, in ASCII';
  // `https:host` and `https:/host` are the same address to a parser, not to all who read it.
  const schemes = rules.privateAddresses ? ['https://', 'http://'] : ['https://'];
  if (!schemes.some((scheme) => text.toLowerCase().startsWith(scheme) && text.charAt(scheme.length) !== '/'))
    return `must begin with ${schemes.join(' or ')} and a host`;
  const { hostname, username, password } = new URL(text);
  if (username !== '' || password !== '' || /^[^/]*\/\/[^/?#]*@/.test(text)) return 'must not have a user or password';
  if (text.includes('#')) return 'must not have a fragment';
  const address = literalAddress(hostname);
  return address === undefined || allowedAddresses(rules)(address) ? undefined : 'must be a public address';
}

/** Without the brackets of IPv6; `undefined`: a name. The parser has written odd forms of IPv4 as four decimals. */
export function literalAddress(hostname: string): string | undefined {
  if (hostname.startsWith('[')) return hostname.slice(1, -1);
  return /^\d+\.\d+\.\d+\.\d+$/.test(hostname) ? hostname : undefined;
}
