/** Tiles of hashes of the tree over the log (docs/evidence.md#over-http). */
import { Readable } from 'node:stream';
import { HttpError } from '../pipeline/errors.js';
import type { Route } from '../pipeline/route.js';
import { type EvidenceDeps, hashesFor } from './deps.js';
import { IMMUTABLE, tileAt, tilePaths } from './tilePaths.js';

export function tileRoutes(deps: EvidenceDeps): Route[] {
  const { folder } = deps;
  return tilePaths('/tile/:level').map(({ path, suffix, params }) => ({
    method: 'GET',
    path,
    operation: `getTreeTile${suffix}`,
    summary: 'A tile of the tree over the log',
    description:
      'Hashes of 256 nodes beside each other, or of the first ones, of 32 bytes each (c2sp.org/tlog-tiles). 404: the tree has no such tile yet.',
    tag: 'Evidence',
    ...hashesFor(deps),
    params: { level: 'From `0`, of the hashes of leaves.', ...params },
    answers: [{ status: 200, description: 'The hashes.', contentType: 'application/octet-stream' }],
    errors: ['not_found'],
    async handle({ params: given }) {
      const { level, ...tile } = tileAt(given['level'] ?? '', given);
      const hashes = level === 'entries' ? undefined : await folder.read({ level, ...tile });
      if (hashes === undefined) throw new HttpError('not_found');
      return { status: 200, body: Readable.from([hashes]), headers: IMMUTABLE };
    },
  }));
}
