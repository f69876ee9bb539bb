import { LRUCache } from 'lru-cache';
import type { KeyedHash } from '../../domain/keyedHash.js';
import { atMost } from '../../lib/lruOptions.js';
import { networkOf } from '../auth/address.js';

/** Most addresses whose hash is in memory. */
const REMEMBERED = 10_000;

/** The key of an address in the counters, whose records hold no address. */
export type NetworkKey = (address: string) => string;

export function networkKeys(hash: KeyedHash): NetworkKey {
  const hashes = new LRUCache<string, string>(atMost(REMEMBERED));
  return (address) => {
    let key = hashes.get(address);
    if (key === undefined) hashes.set(address, (key = hash('address', networkOf(address))));
    return key;
  };
}
