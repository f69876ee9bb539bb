import type { Requested, Projection } from '../../runtime/readmodels/index.js';
import { PROJECTIONS } from '../../projections/index.js';
import type { ReadModelStatus } from '../../ops/status/status.js';
import { choiceSchema, dataAnswer, listSchema } from '../pipeline/schemas.js';
import { HttpError } from '../pipeline/errors.js';
import { contextOf } from '../pipeline/commandContext.js';
import type { Call, EarlyCall, Schema } from '../pipeline/route.js';
import type { Named, OpsDeps } from './deps.js';
import { type OpsRoute, STAFF } from './frame.js';
import { rebuildRoutes } from './projectionRebuilds.js';
import { statusExamples, statusSchema } from './projectionSchemas.js';
import { taskRoutes } from './projectionTasks.js';

const named: Schema = choiceSchema(PROJECTIONS.map(({ name }) => name));
const params = { name: `The read model: ${(named['enum'] as string[]).join(', ')}.` };

export function projectionRoutes(ops: OpsDeps): OpsRoute[] {
  const { engines, gifts, upkeep } = ops;

  const of = (call: Call): Named => ({ projection: projectionIn(call), requested: asking(call) });

  function asking(call: Call): Requested {
    const { reason } = call.body;
    const by = contextOf(call, '').by.user ?? 'unknown';
    return { by, at: gifts.now(), ...(typeof reason === 'string' ? { reason: reason.trim() } : {}) };
  }

  async function statusOf(name: string): Promise<ReadModelStatus> {
    const found = (await upkeep.status.look()).find(
      (one): one is ReadModelStatus => one.kind === 'projection' && one.name === name,
    );
    if (found === undefined) throw new HttpError('projection_not_found');
    return found;
  }

  const exists = async (call: EarlyCall): Promise<unknown> => projectionIn(call);
  const options = { of, exists, asking, orders: upkeep.orders, store: engines.store, params };
  const shared = { tag: 'Projections', roles: ['support'], params } as const;

  return [
    {
      method: 'GET',
      path: '/ops/projections',
      operation: 'listProjections',
      summary: 'Status of every read model and process manager',
      description:
        "Measured against the log's end and read from the engines alone, so that a stuck one can't look healthy. Takes two seconds after a minute without calls.",
      tag: 'Projections',
      roles: STAFF,
      watched: true,
      answers: [dataAnswer('All of them.', listSchema(statusSchema), statusExamples)],
      async handle() {
        const found = await upkeep.status.look();
        return { body: { data: found }, shown: found.length };
      },
    },
    {
      ...shared,
      method: 'GET',
      path: '/ops/projections/:name',
      operation: 'getProjection',
      summary: 'Status of one read model',
      roles: STAFF,
      watched: true,
      answers: [dataAnswer('As in the list.', statusSchema, statusExamples[0])],
      errors: ['projection_not_found'],
      async handle(call) {
        return { body: { data: await statusOf(projectionIn(call).name) }, shown: 1 };
      },
    },
    ...rebuildRoutes(options),
    ...taskRoutes(options),
  ];
}

/** @throws HttpError projection_not_found */
function projectionIn({ params: { name: requested } }: EarlyCall): Projection {
  const projection = PROJECTIONS.find(({ name }) => name === requested);
  if (projection === undefined) throw new HttpError('projection_not_found');
  return projection;
}
