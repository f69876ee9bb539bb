/**
 * Bundles of the log's leaves (docs/evidence.md#over-http). A leaf names its stream, and the id of a gift is enough to
 * use it: bundles are only for auditors.
 */
import { Readable } from 'node:stream';
import { leafBundle } from '../../ops/evidence/index.js';
import type { OpsRoute } from '../ops/frame.js';
import { HttpError } from '../pipeline/errors.js';
import type { EvidenceDeps } from './deps.js';
import { IMMUTABLE, tileAt, tilePaths } from './tilePaths.js';

export function bundleRoutes(deps: EvidenceDeps): OpsRoute[] {
  return tilePaths('/tile/entries').map(({ path, suffix, params }) => ({
    method: 'GET',
    path,
    operation: `getTreeEntries${suffix}`,
    summary: 'The leaves of a tile',
    description:
      'The leaves whose hashes a tile of level 0 holds, each behind its length of two bytes (c2sp.org/tlog-tiles). They name streams, types and times, and hold data as salted hashes.',
    tag: 'Evidence',
    roles: ['auditor'],
    params,
    answers: [{ status: 200, description: 'The leaves.', contentType: 'application/octet-stream' }],
    errors: ['not_found'],
    async handle({ params: given }) {
      const { index, width } = tileAt('entries', given);
      const bundle = await leafBundle(deps, index, width);
      if (bundle === undefined) throw new HttpError('not_found');
      return { status: 200, body: Readable.from([bundle]), headers: IMMUTABLE, shown: width };
    },
  }));
}
