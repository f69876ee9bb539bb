/** Read models as support sees them: how they stand, rebuilt, verified and repaired while they are served. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { rebuildOf } from '../../projections/builds.js';
import { considerate } from '../../projections/pace.js';
import { abortRebuild, beginRebuild, beginRollback, RebuildRefusedError, seizeBuilding } from '../../projections/rebuild.js';
import { PROJECTIONS } from '../../readModels.js';
import { type ProjectionStanding, rebuildShown } from '../../standing.js';
import { HttpError } from '../errors.js';
import { contextOf } from '../giftDeps.js';
import type { Call, Schema } from '../route.js';
import { dataSchema } from '../schemas/catalogue.js';
import { type OpsAnswer, type OpsRoute, reasonProperty } from './frame.js';
import { rebuildExample, rebuildSchema, standingExamples, standingSchema } from './projectionSchemas.js';
import { busy, taskRoutes } from './projectionTasks.js';
import type { Named, OpsDeps } from './deps.js';

const named: Schema = { type: 'string', enum: PROJECTIONS.map(({ name }) => name) };
const reasonBody = (required: boolean): Schema => ({ type: 'object', additionalProperties: false, ...(required ? { required: ['reason'] } : {}), properties: { reason: reasonProperty } });
/** The path parameter. */
export const params = { name: `The read model: ${(named['enum'] as string[]).join(', ')}.` };

/** The routes. */
export function projectionRoutes(ops: OpsDeps): OpsRoute[] {
  const { engines, gifts, upkeep } = ops;
  const { events, store } = engines;

  /** @throws HttpError for a name that there is not */
  function of(call: Call): Named {
    const projection = PROJECTIONS.find(({ name }) => name === call.params['name']);
    if (projection === undefined) throw new HttpError('projection_not_found');
    const user = contextOf(call, '').by.user ?? 'unknown';
    const { reason } = call.body;
    return {
      projection,
      deps: { events, store, logger: upkeep.logger, holder: `${user} (${hostname()}:${process.pid}, ${randomUUID().slice(0, 8)})` },
      asked: { by: user, at: gifts.now(), ...(typeof reason === 'string' ? { reason: reason.trim() } : {}) },
    };
  }

  /** What has been asked for; who takes it on shows in the projection's own standing. */
  async function rebuildAnswer(name: string, status: number): Promise<OpsAnswer> {
    const rebuild = (await rebuildOf(store, name))?.value;
    return { status, body: { data: rebuild === undefined ? null : rebuildShown(rebuild, { progress: undefined, holder: null }) }, shown: 0 };
  }

  async function standingOf(name: string): Promise<ProjectionStanding> {
    const found = (await upkeep.standing.look()).find((one): one is ProjectionStanding => one.kind === 'projection' && one.name === name);
    if (found === undefined) throw new HttpError('projection_not_found');
    return found;
  }

  const answer = { description: 'What is to be done; null: it is over.', schema: dataSchema({ oneOf: [rebuildSchema, { type: 'null' }] }), example: { data: { ...rebuildExample, holder: null, events: null, total: null, per_second: null, seconds_left: null } } };
  const shared = { tag: 'Projections', roles: ['support'], params } as const;

  return [
    {
      method: 'GET',
      path: '/ops/projections',
      summary: 'How every read model and process manager stands',
      description: "Measured against the log's end and told from the engines alone, so what is stuck can't look healthy. Takes two seconds where nobody has asked within the last minute.",
      tag: 'Projections',
      roles: ['support', 'auditor'],
      watched: true,
      answers: [{ status: 200, description: 'All of them.', schema: dataSchema({ type: 'array', items: standingSchema }), example: { data: standingExamples } }],
      errors: [],
      async handle() {
        const found = await upkeep.standing.look();
        return { status: 200, body: { data: found }, shown: found.length };
      },
    },
    {
      ...shared,
      method: 'GET',
      path: '/ops/projections/:name',
      summary: 'How one read model stands',
      roles: ['support', 'auditor'],
      watched: true,
      answers: [{ status: 200, description: 'As in the list.', schema: dataSchema(standingSchema), example: { data: standingExamples[0] } }],
      errors: ['projection_not_found'],
      async handle(call) {
        return { status: 200, body: { data: await standingOf(of(call).projection.name) }, shown: 1 };
      },
    },
    {
      ...shared,
      method: 'POST',
      path: '/ops/projections/:name/rebuild',
      summary: 'Build a read model anew beside the one in use',
      description:
        'Asks for a new build, which a process with the role `projector` makes from the whole log, more slowly while requests are answered. It is swapped in at once when it has caught up; until then the one in use serves and is kept up to date. ' +
        'One that was broken off goes on from where it was. `GET /ops/projections/{name}` shows how far it is.',
      body: reasonBody(false),
      bodyOptional: true,
      bodyExample: { reason: 'redemptions are missing' },
      answers: [{ status: 202, ...answer }],
      errors: ['projection_not_found', 'projection_busy', 'projection_refused'],
      async handle(call) {
        const { projection, deps, asked } = of(call);
        return refusing(async () => {
          // Only so is it known that nobody builds: a command, or another process.
          const lease = await seizeBuilding(deps, projection.name, new AbortController().signal);
          try {
            await beginRebuild(store, projection, asked, false);
          } finally {
            await lease?.release();
          }
          return rebuildAnswer(projection.name, 202);
        });
      },
    },
    {
      ...shared,
      method: 'POST',
      path: '/ops/projections/:name/abort',
      summary: 'End a rebuild and drop what it has built',
      body: reasonBody(false),
      bodyOptional: true,
      bodyExample: { reason: 'ticket 4711' },
      answers: [{ status: 200, ...answer, example: { data: null } }],
      errors: ['projection_not_found', 'projection_busy', 'projection_refused'],
      async handle(call) {
        const { projection, deps } = of(call);
        // Asked for again, since its answer was lost, it is over.
        if ((await rebuildOf(store, projection.name)) === undefined) return rebuildAnswer(projection.name, 200);
        return refusing(async () => {
          await abortRebuild(deps, projection.name, new AbortController().signal);
          return rebuildAnswer(projection.name, 200);
        });
      },
    },
    {
      ...shared,
      method: 'POST',
      path: '/ops/projections/:name/rollback',
      summary: 'Go back to the build that was in use before the last rebuild',
      description: 'The former build is kept for a day. The leading projector brings it up to date first, and then swaps it in at once.',
      body: reasonBody(false),
      bodyOptional: true,
      bodyExample: { reason: 'ticket 4711' },
      answers: [{ status: 202, ...answer, example: { data: { ...rebuildExample, kind: 'rollback', state: 'ready', holder: null, events: null, total: null, per_second: null, seconds_left: null } } }],
      errors: ['projection_not_found', 'projection_busy', 'projection_refused'],
      async handle(call) {
        const { projection, asked } = of(call);
        return refusing(async () => {
          await beginRollback(store, projection, asked);
          return rebuildAnswer(projection.name, 202);
        });
      },
    },
    ...taskRoutes({ of, upkeep, store, pace: () => considerate(store.records), params }),
  ];
}

/** What can't be done is answered with why. */
async function refusing<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof RebuildRefusedError) throw error.busy ? busy(error.message) : new HttpError('projection_refused', { message: error.message });
    throw error;
  }
}
