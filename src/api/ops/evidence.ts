/** Route that shows the latest signed heads and their witnesses (docs/support.md#evidence-at-a-glance). */
import type { EvidenceView } from '../../ops/evidence/index.js';
import type { Schema } from '../pipeline/route.js';
import {
  countSchema,
  dataAnswer,
  entity,
  flagSchema,
  listSchema,
  orNull,
  record,
  textSchema,
  timeSchema,
} from '../pipeline/schemas.js';
import type { OpsDeps } from './deps.js';
import { type OpsRoute, STAFF } from './frame.js';

const TEXT = textSchema();
const TIME = timeSchema();

const headSchema = entity('ListedHead', {
  at: timeSchema('When it was signed.'),
  size: orNull(countSchema('How many events it covers; null: what is stored is not a head.')),
  root: orNull(textSchema('The root of the Merkle tree over them, in base64; null as `size`.')),
  position: textSchema('The log position of the last of them.'),
  published: flagSchema('Whether it is the one at `/checkpoint`.'),
  cosigned_by: listSchema(
    record({ witness: TEXT, at: TIME }),
    'Witnesses whose valid cosignature is stored: only that of the published head is.',
  ),
} satisfies Record<keyof EvidenceView['heads'][number], Schema>);

const verificationSchema = record({
  at: timeSchema('When it ended.'),
  by: orNull(textSchema('Who made it.')),
  events: countSchema('How many events were read.'),
} satisfies Record<keyof NonNullable<EvidenceView['last_verified']>, Schema>);

const evidenceSchema = entity('EvidenceAtAGlance', {
  origin: orNull(textSchema('The name of the log in its heads; null: nothing was signed yet.')),
  heads: listSchema(headSchema, 'The latest first, at most 20.'),
  not_cosigned_by: listSchema(TEXT, 'Witnesses without a cosignature of the published head.'),
  uncovered_since: orNull(timeSchema('When the first event happened that no head covers; null: there is none.')),
  last_verified: {
    ...verificationSchema,
    type: ['object', 'null'],
    description:
      'The last verification (`gift audit verify`) that found the log as it was signed; null: none is recorded.',
  },
} satisfies Record<keyof EvidenceView, Schema>);

const example: EvidenceView = {
  origin: 'gifts.example/log/6ec0bd7f',
  heads: [
    {
      at: '2026-05-04T12:30:00.000Z',
      size: 1042,
      root: 'CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=',
      position: '0000000000001042',
      published: true,
      cosigned_by: [{ witness: 'witness.example', at: '2026-05-04T12:30:01.000Z' }],
    },
  ],
  not_cosigned_by: [],
  uncovered_since: null,
  last_verified: { at: '2026-05-01T06:00:00.000Z', by: 'cli:audit@vault', events: 1017 },
};

export function evidenceRoutes({ evidence }: Pick<OpsDeps, 'evidence'>): OpsRoute[] {
  return [
    {
      method: 'GET',
      path: '/ops/evidence',
      operation: 'showEvidence',
      summary: 'The latest signed heads and their witnesses',
      description:
        'What is stored of them. Whether the log is what was signed, only a verification of the whole log tells (`gift audit verify`).',
      tag: 'Audit',
      roles: STAFF,
      watched: true,
      answers: [dataAnswer('The heads.', evidenceSchema, example)],
      async handle() {
        const data = await evidence();
        return { body: { data }, shown: data.heads.length };
      },
    },
  ];
}
