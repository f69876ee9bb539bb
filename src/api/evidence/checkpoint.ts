/** The latest signed head of the tree over the log (docs/evidence.md#over-http). */
import { HttpError } from '../pipeline/errors.js';
import type { Route } from '../pipeline/route.js';
import { type EvidenceDeps, hashesFor } from './deps.js';

export function checkpointRoute(deps: EvidenceDeps): Route {
  const { folder } = deps;
  return {
    method: 'GET',
    path: '/checkpoint',
    operation: 'getCheckpoint',
    summary: 'The latest signed head of the tree over the log',
    description:
      'A signed note (c2sp.org/tlog-checkpoint): origin, number of events, root of the Merkle tree over them. 404 until the first one was signed.',
    tag: 'Evidence',
    ...hashesFor(deps),
    answers: [
      {
        status: 200,
        description: 'The signed note.',
        contentType: 'text/plain',
        example:
          'localhost/log/6ec0bd7f\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n— localhost/log/6ec0bd7f Az3grlgt…\n',
      },
    ],
    errors: ['not_found'],
    async handle() {
      // The head is not read from the log: tiles of a head in the log may not be stored yet.
      const note = await folder.head();
      if (note === undefined) throw new HttpError('not_found');
      const headers = { 'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'public, max-age=5' };
      return { status: 200, body: note, headers };
    },
  };
}
