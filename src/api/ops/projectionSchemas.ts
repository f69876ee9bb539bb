import type { Schema } from '../pipeline/route.js';

const nullable = (type: string, description: string): Schema => ({ type: [type, 'null'], description });
const object = (title: string, properties: Readonly<Record<string, Schema>>): Schema => ({
  title,
  type: 'object',
  additionalProperties: false,
  required: Object.keys(properties),
  properties,
});

const INVALID =
  'What is stored in its place and is no place in the log, shortened: it counts as absent. Null: nothing is wrong with it.';

const common: Readonly<Record<string, Schema>> = {
  name: { type: 'string' },
  position: nullable('string', 'Everything up to here is done.'),
  invalid_position: nullable('string', INVALID),
  lag_events: {
    type: 'integer',
    minimum: 0,
    description:
      'Events that concern it, from where it stands up to the end of the log. A process manager stands at the oldest work that is still open.',
  },
  lag_exact: { type: 'boolean', description: 'False: there may be more than were counted.' },
  lag_seconds: nullable('number', 'Age of the oldest of them; null: not found in time.'),
  per_second: { type: 'number', description: 'Such events that it does a second.' },
  holder: nullable('string', 'The process that works on it; null: none does.'),
  last_holder: {
    oneOf: [
      object('LastHolder', {
        process: { type: 'string' },
        since: nullable('string', 'When it said so last.'),
        lives: nullable(
          'boolean',
          'Whether it lives: true may mean that its disk is full, or that it is frozen; null: unknown here.',
        ),
      }),
      { type: 'null' },
    ],
    description: 'Where none does: which process did last.',
  },
};

const rebuildProperties: Readonly<Record<string, Schema>> = {
  kind: { type: 'string', enum: ['rebuild', 'rollback'] },
  state: {
    type: 'string',
    enum: ['building', 'ready', 'swapping', 'aborting', 'leaving'],
    description: '`ready`: built, the leading projector takes it over; `leaving`: it drops it.',
  },
  version: { type: 'integer' },
  build: { type: 'integer', description: 'How often this version had been built before.' },
  by: { type: 'string' },
  reason: nullable('string', 'Why.'),
  at: { type: 'string', format: 'date-time' },
  holder: nullable('string', 'The process that builds; null: none does, and the rebuild waits to be resumed.'),
  events: nullable('integer', 'Events folded.'),
  total: nullable('integer', 'Of so many, as far as is known.'),
  per_second: nullable('number', 'Events a second.'),
  seconds_left: nullable('number', 'At that rate.'),
};

export const rebuildSchema = object('Rebuild', rebuildProperties);
export const rebuildExample = {
  kind: 'rebuild',
  state: 'building',
  version: 1,
  build: 1,
  by: 'sue',
  reason: 'redemptions are missing',
  at: '2026-05-04T10:00:00.000Z',
  holder: 'till-1:4711:0f3a5b7c',
  events: 120_000,
  total: 400_000,
  per_second: 40_000,
  seconds_left: 7,
};

const served = object('ServedBuild', {
  version: { type: 'integer' },
  build: { type: 'integer', description: 'How often this version had been built before.' },
  position: nullable('string', 'Everything up to here is done.'),
  invalid_position: nullable('string', INVALID),
  lag_events: { type: 'integer', minimum: 0, description: 'Events that concern it and that it has not done.' },
  lag_exact: { type: 'boolean', description: 'False: there may be more than were counted.' },
  lag_seconds: nullable('number', 'Age of the oldest of them; null: not found in time.'),
  holder: nullable('string', 'The process that keeps it up to date; null: none does, so what readers get grows old.'),
});
const previous = object('PreviousBuild', {
  version: { type: 'integer' },
  build: { type: 'integer' },
  until: { type: 'string', format: 'date-time' },
});

export const statusSchema: Schema = {
  oneOf: [
    object('ReadModelStatus', {
      kind: { type: 'string', const: 'projection' },
      ...common,
      version: { type: 'integer' },
      build: { type: 'integer', description: 'How often this version had been built before.' },
      in_use: { type: 'boolean', description: 'Whether readers use it.' },
      quarantined: {
        type: 'integer',
        minimum: 0,
        description: 'Documents out of service, since they could not be folded.',
      },
      rebuild: { oneOf: [rebuildSchema, { type: 'null' }] },
      served: {
        oneOf: [served, { type: 'null' }],
        description: 'What readers use where it is of another release, until the version of this one is built.',
      },
      previous: { oneOf: [previous, { type: 'null' }], description: 'The build that can be gone back to.' },
      previous_release: {
        oneOf: [previous, { type: 'null' }],
        description:
          'Where a rebuild came after a deployment: the build of the release before it, kept beside `previous` so that this release can be brought back.',
      },
    }),
    object('ProcessManagerStatus', {
      kind: { type: 'string', const: 'process' },
      ...common,
      in_flight: {
        type: 'integer',
        minimum: 0,
        description: 'Pieces of work under way, or waiting for their next attempt.',
      },
      parked: {
        type: 'integer',
        minimum: 0,
        description: 'Pieces of work that were given up and wait for a person.',
      },
    }),
    object('FailingPart', {
      kind: { type: 'string', const: 'part' },
      name: {
        type: 'string',
        description: 'A part of a process that is to run all the time and fails; others are not listed.',
      },
      process: { type: 'string' },
      since: nullable('string', 'When the first of its failures was.'),
      failures: { type: 'integer', minimum: 0, description: 'How often it has ended, one time after the other.' },
      why: nullable('string', 'Why.'),
    }),
  ],
};

const commonExample = {
  position: '0000000000000042',
  invalid_position: null,
  lag_events: 0,
  lag_exact: true,
  lag_seconds: 0,
  per_second: 12,
  holder: 'till-1:4711:0f3a5b7c',
  last_holder: null,
};
/** One example of each kind. */
export const statusExamples = [
  {
    kind: 'projection',
    name: 'gifts',
    ...commonExample,
    version: 1,
    build: 0,
    in_use: true,
    quarantined: 0,
    rebuild: null,
    served: null,
    previous: null,
    previous_release: null,
  },
  { kind: 'process', name: 'purchase', ...commonExample, in_flight: 2, parked: 0 },
  {
    kind: 'part',
    name: 'charge outcomes',
    process: 'till-1:4711:0f3a5b7c',
    since: '2026-05-04T10:00:00.000Z',
    failures: 12,
    why: 'an engine does not answer',
  },
];

const fieldDifference: Schema = {
  type: 'object',
  additionalProperties: false,
  required: ['field'],
  properties: {
    field: { type: 'string' },
    served: { description: 'Absent: nothing is served.' },
    log: { description: 'Absent: the log says nothing.' },
  },
};

export const verificationSchema = object('Verification', {
  version: { type: 'integer' },
  build: { type: 'integer', description: 'How often this version had been built before.' },
  documents: { type: 'integer', description: 'Documents that were compared.' },
  differences: { type: 'integer' },
  unsettled: { type: 'integer', description: 'Documents that could not be compared, since the projection is behind.' },
  behind: { type: 'boolean' },
  position: nullable('string', 'Everything up to here was folded.'),
  found: {
    type: 'array',
    description: 'The first 1,000 differences. Values that are secret or personal are masked.',
    items: {
      type: 'object',
      additionalProperties: false,
      required: ['id', 'kind', 'fields'],
      properties: {
        id: { type: 'string' },
        kind: { type: 'string', enum: ['missing', 'extra', 'different', 'quarantined', 'unfoldable'] },
        served_at: { type: 'string' },
        log_at: { type: 'string' },
        fields: { type: 'array', items: fieldDifference },
      },
    },
  },
});

export const repairSchema = object('Repair', {
  documents: {
    type: 'array',
    items: {
      type: 'object',
      additionalProperties: false,
      required: ['id', 'outcome'],
      properties: {
        id: { type: 'string' },
        outcome: { type: 'string', enum: ['repaired', 'same', 'removed', 'quarantined'] },
        cause: { type: 'string' },
      },
    },
  },
});

export const taskSchema = (kind: string, result: Schema): Schema =>
  object(`${kind}Task`, {
    id: { type: 'string' },
    kind: { type: 'string', const: kind.toLowerCase() },
    projection: { type: 'string' },
    state: {
      type: 'string',
      enum: ['running', 'done', 'failed', 'interrupted'],
      description: '`interrupted`: the process that carried it out has ended; ask for it again.',
    },
    by: { type: 'string' },
    reason: nullable('string', 'Why.'),
    at: { type: 'string', format: 'date-time' },
    told_at: { type: 'string', format: 'date-time' },
    progress: nullable('number', 'How far it is, from 0 to 1.'),
    result: { oneOf: [result, { type: 'null' }] },
    failure: nullable('string', 'Why it failed.'),
  });

const taskExample = {
  id: '6ec0bd7f-11c0-43da-975e-2a8ad9ebae0b',
  projection: 'gifts',
  state: 'done',
  by: 'sue',
  reason: null,
  at: '2026-05-04T10:00:00.000Z',
  told_at: '2026-05-04T10:00:09.000Z',
  progress: 1,
  failure: null,
};
export const verificationExample = {
  ...taskExample,
  kind: 'verification',
  result: {
    version: 1,
    build: 1,
    documents: 280_113,
    differences: 1,
    unsettled: 0,
    behind: false,
    position: '0000000000000042',
    found: [
      {
        id: '5f2c9d6a1b7e4c80d3a1',
        kind: 'different',
        served_at: '0000000000000040',
        log_at: '0000000000000040',
        fields: [{ field: 'redemption.redeemed', served: false, log: true }],
      },
    ],
  },
};
export const repairExample = {
  ...taskExample,
  kind: 'repair',
  reason: 'ticket 4711',
  result: { documents: [{ id: '5f2c9d6a1b7e4c80d3a1', outcome: 'repaired' }] },
};
