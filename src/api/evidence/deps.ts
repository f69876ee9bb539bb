import type { EventStore } from '../../ports/eventStore.js';
import type { TileFolder } from '../../ops/evidence/index.js';
import type { RouteDescription } from '../pipeline/route.js';

export interface EvidenceDeps {
  readonly events: EventStore;
  /** The same log as stored: neither decrypted nor upcast. */
  readonly stored: Pick<EventStore, 'read' | 'readAll'>;
  readonly folder: TileFolder;
  /** Whether callers need no token for heads and tiles of hashes. */
  readonly isPublic: boolean;
  readonly now: () => string;
}

/** Callers that may request hashes, which reveal nothing of what was hashed. */
export const hashesFor = ({ isPublic }: Pick<EvidenceDeps, 'isPublic'>): Pick<RouteDescription, 'caller' | 'roles'> =>
  isPublic ? { caller: 'none' } : { caller: 'user', roles: ['auditor'] };
