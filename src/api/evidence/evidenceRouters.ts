/** The tree over the log: its head, its tiles, and bundles of its leaves (docs/evidence.md#over-http). */
import { accessRecorder } from '../../commands/recordAccess.js';
import { opsRoute, type OpsRoute } from '../ops/frame.js';
import type { RouterMaker, SubjectRouter } from '../pipeline/router.js';
import { type EvidenceDeps, hashesFor } from './deps.js';
import { HttpError } from '../pipeline/errors.js';
import type { Route } from '../pipeline/route.js';
import { Readable } from 'node:stream';
import { readLeafBundle } from '../../ops/evidence/index.js';

export function evidenceRouters(routerOf: RouterMaker, deps: EvidenceDeps): SubjectRouter[] {
  const access = accessRecorder(deps.events, deps.now);
  return [
    routerOf('/checkpoint', [checkpointRoute(deps)]),
    routerOf('/tile', [...tileRoutes(deps), ...bundleRoutes(deps).map((route) => opsRoute(access, route))]),
  ];
}

function checkpointRoute(deps: EvidenceDeps): Route {
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
      return { body: note, headers };
    },
  };
}

function tileRoutes(deps: EvidenceDeps): Route[] {
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
      const hashes = await folder.readPath(tilePathIn(given['level'] ?? '', given));
      if (hashes === undefined) throw new HttpError('not_found');
      return { body: Readable.from([hashes]), headers: IMMUTABLE };
    },
  }));
}

/** A leaf names its stream, and the id of a gift is enough to use it: bundles are only for auditors. */
function bundleRoutes(deps: EvidenceDeps): OpsRoute[] {
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
      const bundle = await readLeafBundle(deps, tilePathIn('entries', given));
      if (bundle === undefined) throw new HttpError('not_found');
      return { body: Readable.from([bundle.bytes]), headers: IMMUTABLE, shown: bundle.leaves };
    },
  }));
}

/**
 * The steps of a tile's path (c2sp.org/tlog-tiles), enough for 256 billion events: three for the index, and one for the
 * width of a partial tile.
 */
const STEPS = ['n1', 'n2', 'n3', 'n4'] as const;
const WORDS =
  'A step of the path: three digits, with an `x` before them in all steps but the last; `067.p/8` is a part of 8.';

interface TilePath {
  readonly path: string;
  /** Suffix of the operation's name: `''`, `2`, `3` or `4`. */
  readonly suffix: string;
  readonly params: Readonly<Record<string, string>>;
}

/** @param base path before the steps, such as `/tile/:level` */
function tilePaths(base: string): readonly TilePath[] {
  return STEPS.map((_, last) => {
    const names = STEPS.slice(0, last + 1);
    return {
      path: [base, ...names.map((name) => `:${name}`)].join('/'),
      suffix: last === 0 ? '' : String(last + 1),
      params: Object.fromEntries(names.map((name) => [name, WORDS])),
    };
  });
}

/** Path of the tile that a request names, such as `tile/0/x001/234`. */
function tilePathIn(level: string, params: Readonly<Record<string, string>>): string {
  return ['tile', level, ...STEPS.flatMap((name) => params[name] ?? [])].join('/');
}

/** Headers of an answer whose bytes never change. */
const IMMUTABLE = {
  'Content-Type': 'application/octet-stream',
  'Cache-Control': 'public, max-age=31536000, immutable',
} as const;
