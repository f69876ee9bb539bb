import type { Schema } from '../pipeline/route.js';
import {
  choiceSchema,
  countSchema,
  dataSchema,
  entity,
  flagSchema,
  integerSchema,
  listSchema,
  record,
  textSchema,
  timeSchema,
} from '../pipeline/schemas.js';

const nullable = (type: string, description: string): Schema => ({ type: [type, 'null'], description });
const BUILD = integerSchema('How many earlier builds of this version there were.');
const BUILD_ID = { version: integerSchema(), build: BUILD };
const LOG_PROGRESS = {
  position: nullable('string', 'All events up to this position are processed.'),
  invalid_position: nullable(
    'string',
    'A stored position that does not exist in the log, shortened; it counts as absent. Null: the stored position is valid.',
  ),
  lag_events: countSchema(
    'Its events that are not processed yet, up to the end of the log. A process manager counts from its oldest open work.',
  ),
  lag_exact: flagSchema('False: there may be more events than counted.'),
  lag_seconds: nullable('number', 'Age of the oldest of these events; null: not found in time.'),
};

const common: Readonly<Record<string, Schema>> = {
  name: textSchema(),
  ...LOG_PROGRESS,
  per_second: { type: 'number', description: 'Its events processed a second.' },
  holder: nullable('string', 'The process that works on it; null: none.'),
  last_holder: {
    oneOf: [
      entity('LastHolder', {
        process: textSchema(),
        since: nullable('string', 'When it last reported.'),
        lives: nullable('boolean', 'Whether it is alive, perhaps frozen or with a full disk; null: unknown here.'),
      }),
      { type: 'null' },
    ],
    description: 'Without a holder: the last one.',
  },
};

const rebuildProperties: Readonly<Record<string, Schema>> = {
  kind: choiceSchema(['rebuild', 'rollback']),
  state: choiceSchema(
    ['building', 'ready', 'swapping', 'aborting', 'leaving'],
    '`ready`: built, and to be taken over by the leading projector; `leaving`: to be dropped by it.',
  ),
  ...BUILD_ID,
  by: textSchema(),
  reason: nullable('string', 'Why.'),
  at: timeSchema(),
  holder: nullable('string', 'The process that builds; null: none, the build waits to be continued.'),
  events: nullable('integer', 'Events folded.'),
  total: nullable('integer', 'Events to fold, as far as known.'),
  per_second: nullable('number', 'Events a second.'),
  seconds_left: nullable('number', 'Remaining time at that rate.'),
};

export const rebuildSchema = entity('Rebuild', rebuildProperties);
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

const served = entity('ServedBuild', {
  ...BUILD_ID,
  ...LOG_PROGRESS,
  holder: nullable('string', 'The process that keeps it up to date; null: none, so it falls behind.'),
});
const previous = entity('PreviousBuild', {
  ...BUILD_ID,
  until: timeSchema(),
});

export const statusSchema: Schema = {
  oneOf: [
    entity('ReadModelStatus', {
      kind: { type: 'string', const: 'projection' },
      ...common,
      ...BUILD_ID,
      in_use: flagSchema('Whether readers use it.'),
      quarantined: countSchema('Documents out of service, because they could not be folded.'),
      rebuild: { oneOf: [rebuildSchema, { type: 'null' }] },
      served: {
        oneOf: [served, { type: 'null' }],
        description: 'The build of another release, if readers use it until the version of this release is built.',
      },
      previous: { oneOf: [previous, { type: 'null' }], description: 'The previous build, for a rollback.' },
      previous_release: {
        oneOf: [previous, { type: 'null' }],
        description:
          'After a deployment and a rebuild: the build of the previous release, kept besides `previous` so that the previous release can be deployed again.',
      },
    }),
    entity('ProcessManagerStatus', {
      kind: { type: 'string', const: 'process' },
      ...common,
      in_flight: countSchema('Pieces of work under way, or waiting for their next attempt.'),
      parked: countSchema('Pieces of work that were given up and wait for a person.'),
    }),
    entity('FailingPart', {
      kind: { type: 'string', const: 'part' },
      name: textSchema('A part of a process that should always run and fails. Healthy parts are not listed.'),
      process: textSchema(),
      since: nullable('string', 'When it first failed.'),
      failures: countSchema('Failures in a row.'),
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
/** One example of each kind of status. */
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

const fieldDifference = record(
  {
    field: textSchema(),
    served: { description: 'Absent: not served.' },
    log: { description: 'Absent: not in the log.' },
  },
  ['field'],
);

const verificationSchema = entity('Verification', {
  ...BUILD_ID,
  documents: integerSchema('Documents that were compared.'),
  differences: integerSchema(),
  unsettled: integerSchema('Documents that could not be compared, because the projection is behind.'),
  behind: flagSchema(),
  position: nullable('string', 'The log was folded up to this position.'),
  found: listSchema(
    record(
      {
        id: textSchema(),
        kind: choiceSchema(['missing', 'extra', 'different', 'quarantined', 'unfoldable']),
        served_at: textSchema(),
        log_at: textSchema(),
        fields: listSchema(fieldDifference),
      },
      ['id', 'kind', 'fields'],
    ),
    'The first 1,000 differences. Values that are secret or personal are masked.',
  ),
});

const repairSchema = entity('Repair', {
  documents: listSchema(
    record(
      {
        id: textSchema(),
        outcome: choiceSchema(['repaired', 'same', 'removed', 'quarantined']),
        cause: textSchema(),
      },
      ['id', 'outcome'],
    ),
  ),
});

/** @param result schema of the task's result; absent: the task has none */
const taskSchema = (kind: string, result?: Schema): Schema =>
  entity(`${kind}Task`, {
    id: textSchema(),
    kind: { type: 'string', const: kind.toLowerCase() },
    projection: textSchema(),
    state: choiceSchema(
      ['running', 'done', 'failed', 'interrupted'],
      '`interrupted`: its process has ended; start it again.',
    ),
    by: textSchema(),
    reason: nullable('string', 'Why.'),
    at: timeSchema(),
    told_at: timeSchema(),
    progress: nullable('number', 'From 0 to 1.'),
    result: result === undefined ? { type: 'null' } : { oneOf: [result, { type: 'null' }] },
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
const refusedRebuildExample = {
  ...taskExample,
  kind: 'rebuild',
  state: 'failed',
  progress: null,
  result: null,
  failure: 'the log is not what was signed, and would be carried into the read model: event 9 was altered',
};
const verificationExample = {
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
const repairExample = {
  ...taskExample,
  kind: 'repair',
  reason: 'ticket 4711',
  result: { documents: [{ id: '5f2c9d6a1b7e4c80d3a1', outcome: 'repaired' }] },
};

/** An answer with a task of each kind. */
export const TASKS = {
  verification: {
    schema: dataSchema(taskSchema('Verification', verificationSchema)),
    example: { data: verificationExample },
  },
  repair: { schema: dataSchema(taskSchema('Repair', repairSchema)), example: { data: repairExample } },
  rebuild: { schema: dataSchema(taskSchema('Rebuild')), example: { data: refusedRebuildExample } },
} as const;
