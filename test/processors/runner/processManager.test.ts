import * as assert from 'uvu/assert';
import type { DomainEvent } from '../../../src/domain/decider.js';
import { idOf } from '../../../src/domain/streamName.js';
import type { Intent, ProcessManager } from '../../../src/processors/runner/processManager.js';
import { runManagers } from '../../../src/processors/runner/run.js';
import type { StepDeps } from '../../../src/processors/runner/stepDeps.js';
import { installationSuite } from '../../support/service/installationSuite.js';

const test = installationSuite('a process manager of another business');

type Rung = DomainEvent<'BellRung', object>;
type Opened = DomainEvent<'DoorOpened', object>;

/** Opens a door once for each bell. */
const doors: ProcessManager<'waiting', Rung | Opened, Intent, StepDeps> = {
  name: 'dispute',
  steps: ['open'],
  events: { BellRung: true, DoorOpened: true },
  instancesOf: ({ stream }) => [idOf(stream)],
  react: (_state, { type }, instance) =>
    type === 'BellRung' ? { state: 'waiting', intents: [{ do: 'open', instance }] } : { state: undefined, intents: [] },
  resume: (_state, instance) => [{ do: 'open', instance }],
  parkAs: ({ instance }) => ({ name: 'dispute', entity: instance, step: 'open' }),
  jobs({ instance }, open, { events, writer }) {
    const cause = { id: 'e', at: '', revision: 0, correlationId: 'c' };
    return [
      {
        key: `open/${instance}`,
        pool: { atOnce: 1 },
        transactionId: instance,
        parkAs: { name: 'dispute', entity: instance, step: 'open' },
        cause: () => (open.state(doors, instance) === undefined ? undefined : cause),
        run: async () => {
          const opened: Opened = { type: 'DoorOpened', data: {} };
          const { length } = await events.read(`door-${instance}`);
          if (length === 1)
            await writer.append(`door-${instance}`, opened, 0, { commandId: `open-${instance}`, cause });
        },
      },
    ];
  },
  isSettled: async (events, { entity }) => (await events.read(`door-${entity}`)).length === 2,
};

test('runs by the runner alone, from a list of its own', async ({ installation }) => {
  const { events, bus, logger, records } = installation.deps;
  await installation.append('door-left', 'BellRung', {});
  const running = runManagers({
    events,
    bus,
    logger,
    records,
    leaseMs: 300,
    processes: { managers: [doors], open: (deps) => deps },
  });
  await installation.append('door-right', 'BellRung', {});
  await installation.until(async () => (await installation.all('DoorOpened')).length === 2);
  await installation.until(async () => running.status().open === 0);
  assert.equal(await installation.types('door-left'), ['BellRung', 'DoorOpened']);
  assert.equal(await installation.types('door-right'), ['BellRung', 'DoorOpened']);
  assert.equal([...running.status().steps.keys()], ['open']);
  await running.close();
});

test.run();
