/** A process's handle of a simulated key store. */
import type { KeyStore } from '../../../src/ports/keyStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import type { Link } from '../world/link.js';
import type { SubjectRows } from './subjectRows.js';

/** Opens a handle of the rows for the process at the other end of the link. */
export function openSimulatedKeys(rows: SubjectRows, link: Link): KeyStore {
  let closed = false;
  const call = async <T>(text: string, effect: () => T, reads?: true): Promise<T> => {
    if (closed) throw new UnavailableError('the key store is closed');
    return link.call({ text, effect, ...(reads === undefined ? {} : { reads }) });
  };
  return {
    engine: 'mongodb',
    byId: async (ids) => call('by id', () => rows.byId(ids), true),
    byLookup: async (lookups) => call('by lookup', () => rows.byLookup(lookups), true),
    add: async (added) => call('add', () => rows.add(added)),
    rewrap: async (changed) => call('rewrap', () => rows.rewrap(changed)),
    page: async (after, limit) => call('page', () => rows.page(after, limit), true),
    fence: async (ids) => call('fence', () => rows.setFenced(ids, true)),
    unfence: async (ids) => call('unfence', () => rows.setFenced(ids, false)),
    remove: async (ids) => call('remove', () => rows.remove(ids)),
    removed: async (ids) => call('removed', () => rows.removed(ids), true),
    putErasure: async (row) => call('put erasure', () => rows.putErasure(row)),
    erasures: async (after, limit) => call('erasures', () => rows.erasures(after, limit), true),
    ping: async () => call('ping', () => undefined, true),
    async close() {
      closed = true;
    },
  };
}
